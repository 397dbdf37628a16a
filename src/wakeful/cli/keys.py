"""`wakeful key …`: show, restore and rotate the device key of this machine. No server is needed."""

from pathlib import Path
from typing import Annotated

import typer

from wakeful.cli.client import fail, failing, read_settings
from wakeful.cli.printable import echo
from wakeful.cli.remote.target import refuse_remote
from wakeful.cli.show import AsJson, show_done, show_json

app = typer.Typer(
    help="Show, restore and rotate the device key.", no_args_is_help=True, add_completion=False, rich_markup_mode=None
)


@app.callback()
def _stay_here() -> None:
    refuse_remote("`wakeful key` is about the device key of")


@app.command()
def show(as_json: AsJson = False) -> None:
    """Print the recovery key. It decrypts everything here, so keep it secret."""
    settings = read_settings()
    from wakeful.app.data.files import show_recovery_key

    with failing():
        text = show_recovery_key(settings)
    show_done({"recovery_key": text}, text, as_json)


@app.command()
def restore(
    file: Annotated[
        Path | None, typer.Option(help="A file with the recovery key; without it, you are asked for it.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Restore the device key from its recovery key. An existing key is moved aside, not overwritten."""
    settings = read_settings()
    from wakeful.app.data.files import restore_device_key

    try:
        # Never as an argument: the shell would keep it in its history.
        text = typer.prompt("Recovery key", err=True) if file is None else file.read_text(encoding="utf-8")
        with failing():
            path = restore_device_key(settings, text)
    except (OSError, UnicodeDecodeError) as error:
        fail(f"The file {str(file)!r} cannot be read: {error}.")
    if as_json:
        show_json({"path": str(path)})
    else:
        echo(f"Restored the device key at {path}. Restart the server, so that it uses it.")


@app.command()
def rotate(as_json: AsJson = False) -> None:
    """Replace the device key; the old one is kept beside it. Stop the server first."""
    settings = read_settings()
    from wakeful.app.data.files import rotate_device_key

    with failing():
        text, locked = rotate_device_key(settings)
    if as_json:
        show_json({"recovery_key": text, "locked": locked})
        return
    echo(f"The device key was replaced. The new recovery key, which replaces yours: {text}")
    if locked:
        echo(f"The databases of these agents were locked before, and neither key opens them: {', '.join(locked)}")
