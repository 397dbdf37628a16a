"""Backups of the data of version 0.2, and restores of them, also by processes that are killed at a step."""

import io
import json
import os
import signal
import tarfile
from hashlib import sha256
from pathlib import Path
from typing import Any

from forked_process import fork
from upgrade.old_data import OldData, copy_old_data
from wakeful.backup.age import Decryptor, Encryptor, Identity
from wakeful.backup.archive import HEAD, KEYS, MANIFEST
from wakeful.backup.restore_plan import RestoreOptions, Result
from wakeful.backup.restoring import restore_backup
from wakeful.backup.service import back_up_stopped, read_keys
from wakeful.config.settings import Settings
from wakeful.datadir.files import finish_restore

IDENTITY = Identity(bytes(range(32)))


def ignore(_what: str, _size: int) -> None:
    """Show no progress."""


def back_up(settings: Settings, path: Path, *, with_keys: bool = False) -> Path:
    keys = read_keys(settings) if with_keys else None
    return back_up_stopped(settings, path, [IDENTITY.recipient], keys, ignore).path


def back_up_and_die_after(settings: dict[str, Any], path: Path, step: str) -> int | None:
    """Back up in a process that kills itself while it writes or reads back; return how it ended."""
    process = fork(_back_up_and_die_after, settings, path, step)
    process.join(60)
    code = process.exitcode
    process.close()
    return code


def _back_up_and_die_after(settings: dict[str, Any], path: Path, step: str) -> None:
    def die(reached: str, _size: int) -> None:
        if reached == step:
            os.kill(os.getpid(), signal.SIGKILL)

    back_up_stopped(Settings.model_validate(settings), path, [IDENTITY.recipient], None, die)


def restore(settings: Settings, path: Path, **options: Any) -> Result:
    return restore_backup(settings, path, RestoreOptions(find_keys=lambda _: [IDENTITY], **options))


def old_backup(folder: Path, **more: Any) -> tuple[OldData, Path]:
    """Return a copy of 0.2's embedded data, and a backup of it."""
    folder.mkdir(exist_ok=True)
    old = copy_old_data("sqlite", folder)
    return old, back_up(Settings.model_validate(old.settings), folder / "0.2.age", **more)


def restore_and_die_at(settings: dict[str, Any], path: Path, step: str, times: int = 1) -> int | None:
    """Restore in a process that kills itself when it reaches a step for the nth time; return how it ended."""
    process = fork(_restore_and_die_at, settings, path, step, times)
    process.join(60)
    code = process.exitcode
    process.close()
    return code


def _restore_and_die_at(settings: dict[str, Any], path: Path, step: str, times: int) -> None:
    left = times

    def die(reached: str) -> None:
        nonlocal left
        left -= reached == step
        if not left:
            os.kill(os.getpid(), signal.SIGKILL)

    restore(Settings.model_validate(settings), path, replaces=True, on_step=die)


def finish_and_die_at_rename(settings: dict[str, Any]) -> int | None:
    """Finish a restore in a process that dies after its first rename, or ends because there is none left."""
    process = fork(_finish_and_die_at_rename, settings)
    process.join(60)
    code = process.exitcode
    process.close()
    return code


def _finish_and_die_at_rename(settings: dict[str, Any]) -> None:
    rename = Path.rename

    def rename_and_die(path: Path, target: Path) -> None:
        rename(path, target)
        os.kill(os.getpid(), signal.SIGKILL)

    Path.rename = rename_and_die  # pyright: ignore[reportAttributeAccessIssue]
    finish_restore(Settings.model_validate(settings))


def opened(file: Path) -> dict[str, tuple[tarfile.TarInfo, bytes]]:
    """Return the members of a backup by name, with their content."""
    with file.open("rb") as encrypted:
        source = Decryptor(encrypted, lambda _: [IDENTITY])
        inside = io.BytesIO(b"".join(iter(lambda: source.read(1 << 20), b"")))
    with tarfile.open(fileobj=inside) as tar:
        return {each.name: (each, tar.extractfile(each).read() if each.isreg() else b"") for each in tar}


def forge(file: Path, members: dict[str, bytes | str], *, mac: str | None = "as it was", mode: int = 0o600) -> Path:
    """Change a backup as one could who can open and encrypt it: files of bytes and links to texts, with a fit manifest.

    `mac` None: as Wakeful 0.2 wrote it.
    """
    found = opened(file)
    for name, content in members.items():
        info = tarfile.TarInfo(name)
        info.mode = mode
        if isinstance(content, str):
            info.type, info.linkname = tarfile.SYMTYPE, content
        found[name] = info, b"" if isinstance(content, str) else content
    last, manifest = found.pop(MANIFEST)
    first = [KEYS, HEAD, "settings/wakeful.toml"]
    found = {name: found[name] for name in [*filter(found.get, first), *(each for each in found if each not in first)]}
    said = json.loads(manifest)
    said["entries"] = {
        name: (len(data), sha256(data or info.linkname.encode()).hexdigest())
        for name, (info, data) in found.items()
        if name not in (HEAD, KEYS)
    }
    if mac is None:
        said.pop("mac", None)
    elif mac != "as it was":
        said["mac"] = mac
    inside = io.BytesIO()
    with tarfile.open(fileobj=inside, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for info, data in [*found.values(), (last, json.dumps(said).encode())]:
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    encryptor = Encryptor([IDENTITY.recipient])
    made = file.with_name(f"forged-{os.urandom(4).hex()}.age")
    made.write_bytes(encryptor.head + encryptor.update(inside.getvalue()) + encryptor.finish())
    return made
