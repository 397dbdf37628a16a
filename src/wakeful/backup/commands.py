"""`wakeful backup` and `wakeful restore`."""

import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from wakeful.cli.arguments import Yes, confirm
from wakeful.cli.output import WRONG, AsJson, echo, fail, harmless, print_note, show_done
from wakeful.cli.server import connect, failing
from wakeful.cli.target import is_remote_chosen, read_settings, refuse_remote
from wakeful.core.files import find_running

if TYPE_CHECKING:
    from collections.abc import Sequence

    from wakeful.backup.age import Identity, Passphrase
    from wakeful.backup.backup_file import Made
    from wakeful.backup.restore_plan import Plan, Result
    from wakeful.config.settings import Settings


_CLEAR = "\r\x1b[K"
_PIECE = 256 * 1024
_NICENESS = 10
_MIN_PASSPHRASE = 10
_MAX_LISTED = 50  # people, before a restore


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
    from wakeful.backup.service import back_up_stopped, read_keys, save_stream

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
    from wakeful.backup.service import make_key_pair

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
    from wakeful.backup.age import Passphrase

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


# ── `wakeful restore` ────────────────────────────────────────────────────────────────────────────────────────────────


def restore(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A file that `wakeful backup` wrote.")],
    identity: Annotated[
        list[Path] | None,
        typer.Option(help="A file with an age identity (AGE-SECRET-KEY-1…) that opens the backup; may be repeated."),
    ] = None,
    replace: Annotated[
        bool,
        typer.Option("--replace", help="Replace present data; an embedded store is moved aside, not deleted."),
    ] = False,
    trust_settings: Annotated[
        bool,
        typer.Option(
            "--trust-settings", help="Do not ask whether to trust a backup of which nobody can tell who made it."
        ),
    ] = False,
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """Restore a backup: check all of it, put it into place, and leave everything paused.

    Every browser is logged out, and no wake fires before `wakeful resume`: the server that the backup was made of may
    still run.

    Without this machine's device key, or for a backup of Wakeful 0.2, nobody can tell who made the file. Then its
    settings that name programs or lift limits are listed, and the command asks whether you trust it, also with --yes.
    """
    refuse_remote("`wakeful restore` restores the store of")
    settings = read_settings()
    identities = _read_identities(identity or [])
    from wakeful.backup.restore_plan import RestoreOptions
    from wakeful.backup.restoring import restore_backup

    show = ByteProgress()

    def find_keys(is_locked: bool) -> "Sequence[Identity | Passphrase]":
        return _ask_passphrase() if is_locked else identities

    def ask(plan: "Plan") -> None:
        show.clear()
        if not as_json:
            echo(_describe(plan))
        if not plan.is_proven:
            print_note(_warn(plan))
            confirm("Do you trust the one who made this backup?", trust_settings, "--trust-settings")
        before = "What is there now is replaced. " if plan.replaces else ""
        confirm(f"{before}Do you know all these people and tokens, and restore this backup to {plan.place}?", yes)

    with failing():
        try:
            options = RestoreOptions(find_keys=find_keys, replaces=replace, confirm=ask, on_bytes=show)
            result = restore_backup(settings, file, options)
        finally:
            show.clear()
    show_done(_to_json(result), _report(result), as_json)


def _read_identities(paths: "Sequence[Path]") -> "list[Identity]":
    if not paths:
        return []
    from wakeful.backup.age import read_identities

    found: list[Identity] = []
    for path in paths:
        try:
            with failing():
                found += read_identities(path.read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError) as error:
            fail(f"The file {str(path)!r} cannot be read: {error}.", WRONG)
    return found


def _ask_passphrase() -> "list[Passphrase]":
    if not sys.stdin.isatty():
        fail("This backup is encrypted to a passphrase, and there is no terminal to ask for it on.", WRONG)
    from wakeful.backup.age import Passphrase

    return [Passphrase(typer.prompt("Passphrase of the backup", hide_input=True, err=True))]


def _describe(plan: "Plan") -> str:
    """Return what is in a backup, with the people and tokens that will have access."""
    head, restored = plan.head, plan.restored
    lines = [
        f"Backup of {harmless(str(head.made_at))} by Wakeful {harmless(str(head.version))}: "
        f"{_count(restored.agents, 'agent')}, {_count(len(restored.people), 'user')}. "
        "All of it was read and is as its manifest says.",
        "People, and tokens that will work:",
    ]
    for person in restored.people[:_MAX_LISTED]:
        lines.append(f"  {harmless(person.user.name)} ({person.user.role})")
        for token in person.tokens:
            lines.append(f"    {harmless(token.name)} · {token.scope} · since {token.created_at:%Y-%m-%d}")
    if len(restored.people) > _MAX_LISTED:
        lines.append(f"  … and {len(restored.people) - _MAX_LISTED} more")
    if restored.browsers:
        lines.append(f"{_count(restored.browsers, 'logged-in browser')} will be logged out; login links end, too.")
    return "\n".join(lines)


def _warn(plan: "Plan") -> str:
    """Return what a backup of unknown origin could do harm with."""
    return "\n".join(
        [
            "Nobody can tell who made this backup: it has no MAC, as those of Wakeful 0.2, or there is no device key "
            "here to check it with. Its users, tokens, agents, webhooks, channels and models are its maker's, too.",
            "Settings in it that name programs, lift limits, let others in or send data elsewhere:",
            *(f"  {harmless(risk)}" for risk in plan.risks or ["none"]),
        ]
    )


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def _report(result: "Result") -> str:
    plan, restored = result.plan, result.plan.restored
    lines = [f"Restored to {plan.place}. Everything is paused."]
    if result.aside is not None:
        lines.append(f"The data that was there is in {result.aside}; delete it when you no longer need it.")
    if result.recovery_key is not None:
        lines.append(f"The device key came with the backup. Its recovery key is {result.recovery_key}")
    if plan.settings_file is not None:
        lines.append(f"The settings are in {plan.settings_file}. Compare paths, addresses and secrets in it.")
    if plan.head.agents_elsewhere:
        lines.append(
            "The files of these agents were in the data directory of a node, and are not in the backup: "
            + name_some(plan.head.agents_elsewhere)
        )
    if plan.locked:
        lines.append(f"The device key does not open the databases of these agents: {name_some(plan.locked)}")
    for names, words in ((plan.left_out, "Not in the backup"), (plan.changed, "Changed while they were backed up")):
        if names:
            lines.append(f"{words}: {name_some(names)}")
    if restored.interrupted:
        lines.append(
            f"{_count(restored.interrupted, 'run')} not over when the backup was made: interrupted, and can be "
            "continued."
        )
    return "\n".join([*lines, *_will_run(result)])


def _will_run(result: "Result") -> list[str]:
    restored = result.plan.restored
    lines = ["When you resume:"]
    if not restored.overdue and not restored.waiting:
        lines.append("  nothing is scheduled.")
    if restored.overdue:
        lines.append(
            f"  {_count(restored.overdue, 'wake')} due since the backup: each runs once or is skipped, as its booking "
            "says for missed ones."
        )
    if restored.waiting:
        lines.append(f"  {_count(restored.waiting, 'wake')} due later; the first:")
        lines += [
            f"    {wake.nominal_at:%Y-%m-%d %H:%M} UTC · {harmless(wake.comment or wake.instructions)[:60]}"
            for wake in restored.next_wakes
        ]
    lines.append(
        "Next: make sure that the server of the backup does not run any more, start this one, look at the agenda, and "
        "end the pause with `wakeful resume` or on the page."
    )
    return lines


def _to_json(result: "Result") -> dict[str, Any]:
    plan, restored = result.plan, result.plan.restored
    return {
        "place": plan.place,
        "made_at": plan.head.made_at,
        "is_proven": plan.is_proven,
        "aside": None if result.aside is None else str(result.aside),
        "settings_file": None if plan.settings_file is None else str(plan.settings_file),
        "people": [
            {"name": each.user.name, "role": each.user.role, "tokens": [token.name for token in each.tokens]}
            for each in restored.people
        ],
        "agents": restored.agents,
        "browsers_logged_out": restored.browsers,
        "interrupted_runs": restored.interrupted,
        "overdue_wakes": restored.overdue,
        "waiting_wakes": restored.waiting,
        "locked": list(plan.locked),
    }
