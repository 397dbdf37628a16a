"""Backups of the data of version 0.1, and restores of them, also by processes that are killed at a step."""

import os
import signal
from pathlib import Path
from typing import Any

from forked_process import fork
from upgrade.old_data import OldData, copy_old_data
from wakeful.app.backup.backups import back_up_stopped, read_keys
from wakeful.app.backup.restoring import RestoreOptions, Result, finish_restore, restore_backup
from wakeful.config import Settings
from wakeful.service.backup.age import Identity

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
    """Return a copy of 0.1's embedded data, and a backup of it."""
    folder.mkdir(exist_ok=True)
    old = copy_old_data("sqlite", folder)
    return old, back_up(Settings.model_validate(old.settings), folder / "0.1.age", **more)


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
