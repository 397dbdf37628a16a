"""`wakeful backup`: everything in one encrypted file, from a running server or from this machine's data directory."""

import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from wakeful.app.data.server_lock import find_running
from wakeful.cli.client import WRONG, connect, fail, failing, read_settings
from wakeful.cli.printable import echo
from wakeful.cli.remote.target import is_remote_chosen
from wakeful.cli.show import AsJson, harmless, print_note, show_done

if TYPE_CHECKING:
    from collections.abc import Sequence

    from wakeful.app.backup.backups import Made, Passphrase
    from wakeful.config import Settings

_CLEAR = "\r\x1b[K"
_PIECE = 256 * 1024
_NICENESS = 10
_MIN_PASSPHRASE = 10


def backup(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The file to write; or `key`, to make a key pair.")],
    to: Annotated[
        list[str] | None,
        typer.Option(help="An age recipient (age1…); may be repeated. Without it, backup_recipients in the settings."),
    ] = None,
    passphrase: Annotated[
        bool, typer.Option("--passphrase", help="Ask for a passphrase, though there are recipients.")
    ] = False,
    with_keys: Annotated[
        bool,
        typer.Option("--with-keys", help="Include the device key and the secrets in the settings file."),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Write everything into one encrypted file, while the server runs or not; then read it back.

    The file has the store, the agents' databases and files, and the settings, as they were at one moment. It is
    encrypted to recipients or to a passphrase, in the format of age. `wakeful restore` reads it.

    `wakeful backup key` makes a key pair: a recipient for the settings, and an identity that opens the backups.
    """
    if file == Path("key"):
        _make_key(as_json)
        return
    is_remote = is_remote_chosen()
    if is_remote and with_keys:
        fail("--with-keys reads the device key of this machine, so it does not go with another server.", WRONG)
    settings = read_settings()
    _check_name(file)
    recipient = _choose(None if is_remote else settings, to or [], passphrase)
    from wakeful.app.backup.backups import back_up_stopped, read_keys, save_stream

    os.nice(_NICENESS)  # the server goes first
    show = ByteProgress()
    with failing():
        keys = read_keys(settings) if with_keys else None
        try:
            if is_remote or find_running(settings.data_dir) is not None:
                made = save_stream(connect().stream("backups", piece=_PIECE), file.absolute(), recipient, keys, show)
            else:
                made = back_up_stopped(settings, file.absolute(), recipient, keys, show)
        finally:
            show.clear()
    _show_made(made, recipient, with_keys, as_json)


def _make_key(as_json: bool) -> None:
    from wakeful.app.backup.backups import make_key_pair

    pair = make_key_pair()
    show_done(
        {"recipient": pair.recipient, "identity": pair.identity},
        f"Recipient, for backup_recipients in wakeful.toml:\n  {pair.recipient}\n"
        "Identity, which opens the backups. It is not stored and not shown again; keep it apart from this machine, in "
        f"a file that `wakeful restore --identity FILE` reads:\n  {pair.identity}",
        as_json,
    )


def _check_name(file: Path) -> None:
    """End the command before anyone is asked for a passphrase, if the file cannot be written."""
    if file.exists():
        fail(f"{str(file)!r} exists, and a backup replaces no file. Give another name.")
    if not file.absolute().parent.is_dir():
        fail(f"There is no directory {str(file.absolute().parent)!r}. Create it, or give another name.")


def _choose(settings: "Settings | None", to: list[str], asks: bool) -> "Sequence[str] | Passphrase":
    """Return the recipients of the command line or the settings; without any, ask for a passphrase."""
    if to and asks:
        fail("--to and --passphrase name two ways to encrypt. Give one of them.", WRONG)
    recipients = to or ([] if settings is None else list(settings.backup_recipients))
    if recipients and not asks:
        return recipients
    if not sys.stdin.isatty():
        fail(
            "There is no recipient, and no terminal to ask for a passphrase on. Make a key with `wakeful backup key`, "
            "and give its recipient with --to or in backup_recipients.",
            WRONG,
        )
    from wakeful.app.backup.backups import Passphrase

    print_note(f"The backup is encrypted to a passphrase of at least {_MIN_PASSPHRASE} characters.")
    while True:
        text: str = typer.prompt("Passphrase", hide_input=True, confirmation_prompt=True, err=True)
        if len(text) >= _MIN_PASSPHRASE:
            return Passphrase(text)
        print_note(f"It must have at least {_MIN_PASSPHRASE} characters.")


def _show_made(made: "Made", recipient: "Sequence[str] | Passphrase", with_keys: bool, as_json: bool) -> None:
    to = f"{len(recipient)} recipient{'s' if len(recipient) > 1 else ''}" if isinstance(recipient, list) else None
    needs = (
        "The device key is in it, so everyone who can decrypt it can read everything."
        if with_keys
        else "The device key is not in it: to use it elsewhere you also need device.key or the recovery key."
    )
    words = f"Wrote {made.path} ({made.size:,} bytes, {made.entries:,} entries), and read it back.\n"
    words += f"It is encrypted to {to or 'the passphrase'}. {needs}"
    if made.changed:
        words += f"\nThese became shorter while they were read: {name_some(made.changed)}"
    if made.left_out:
        words += f"\nLeft out (sockets, devices, links outside workspaces, or not readable): {name_some(made.left_out)}"
    result: dict[str, Any] = {"path": str(made.path), "bytes": made.size, "entries": made.entries}
    show_done(result | {"left_out": list(made.left_out), "changed": list(made.changed)}, words, as_json)


def name_some(names: "Sequence[str]") -> str:
    """Return the first few of many names."""
    more = f" and {len(names) - 5} more" if len(names) > 5 else ""
    return ", ".join(map(harmless, names[:5])) + more


class ByteProgress:
    """One line on a terminal; elsewhere a line every ten seconds."""

    def __init__(self) -> None:
        self._is_terminal = sys.stderr.isatty()
        self._next = time.monotonic() + (0.5 if self._is_terminal else 10)

    def __call__(self, what: str, size: int) -> None:
        if time.monotonic() < self._next:
            return
        words = f"{size / 1e6:,.0f} MB {what}"
        if self._is_terminal:
            sys.stderr.write(f"{_CLEAR}{words}")
            sys.stderr.flush()
        else:
            echo(words, err=True)
        self._next = time.monotonic() + (0.5 if self._is_terminal else 10)

    def clear(self) -> None:
        if self._is_terminal:
            sys.stderr.write(_CLEAR)
            sys.stderr.flush()
