"""`wakeful key …`: the device key of this machine, on paper and back. Local, for without it no server starts."""

from pathlib import Path
from typing import Annotated

import typer

from wakeful.cli.client import fail
from wakeful.cli.show import AsJson, show_json
from wakeful.config import ConfigError, Settings, load_settings

app = typer.Typer(help="Write the device key down, and put it back.", no_args_is_help=True)


@app.command()
def show(as_json: AsJson = False) -> None:
    """Print the recovery key. Whoever has it can read everything that is encrypted here."""
    from wakeful.app.files import StartError, show_recovery_key

    settings = _settings()
    try:
        text = show_recovery_key(settings)
    except StartError as error:
        fail(str(error))
    show_json({"recovery_key": text}) if as_json else typer.echo(text)


@app.command()
def restore(
    file: Annotated[Path | None, typer.Option(help="A file with the recovery key; without it, type it in.")] = None,
    as_json: AsJson = False,
) -> None:
    """Put the device key back from its recovery key. One that is there is moved aside, not overwritten."""
    from wakeful.app.files import StartError, restore_device_key

    settings = _settings()
    try:
        # Never as an argument: the shell would keep it in its history.
        text = typer.prompt("Recovery key", err=True) if file is None else file.read_text(encoding="utf-8")
        path = restore_device_key(settings, text)
    except (OSError, UnicodeDecodeError) as error:
        fail(f"The file {str(file)!r} cannot be read: {error}.")
    except StartError as error:
        fail(str(error))
    if as_json:
        show_json({"path": str(path)})
    else:
        typer.echo(f"The device key is back at {path}. Start the server again, so that it reads it.")


@app.command()
def rotate(as_json: AsJson = False) -> None:
    """Put a new device key in place of the old one, which is kept beside it. No server may be running."""
    from wakeful.app.files import StartError, rotate_device_key

    settings = _settings()
    try:
        text, locked = rotate_device_key(settings)
    except StartError as error:
        fail(str(error))
    if as_json:
        show_json({"recovery_key": text, "locked": locked})
        return
    typer.echo(f"There is a new device key. Its recovery key, instead of the one you have: {text}")
    if locked:
        typer.echo(f"Neither key opens the databases of these agents, which were locked before: {', '.join(locked)}")


def _settings() -> Settings:
    try:
        return load_settings()
    except ConfigError as error:
        fail(str(error))
