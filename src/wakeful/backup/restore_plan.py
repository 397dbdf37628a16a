"""What a restore is asked for, what it found in the backup, and what it did."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from wakeful.backup.age import Unlocks
from wakeful.backup.archive import ArchiveReader, Head
from wakeful.backup.restored_store import Restored
from wakeful.config.settings import Settings, find_risks
from wakeful.core import device_key as device_keys
from wakeful.core.device_key import has_device_key, to_recovery_key
from wakeful.core.errors import Conflict, NotFound, Unavailable


class NotEmpty(Conflict):
    code = "restore_target_not_empty"


class OtherStoreKind(Conflict):
    code = "other_store_kind"


class DeviceKeyNeeded(NotFound):
    code = "device_key_needed"


class OtherDeviceKeyHere(Conflict):
    code = "other_device_key_here"


class CannotRestore(Unavailable):
    code = "cannot_restore"


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A backup that was read and checked, before it is put into place."""

    head: Head
    restored: Restored
    place: str  # where to
    replaces: bool
    settings_file: Path | None  # where the settings in it go
    has_keys: bool
    is_proven: bool  # one who has the device key of this machine made the backup
    risks: Sequence[str]  # what in the settings and beside them could do harm, if somebody else made it
    locked: Sequence[str]  # agents whose database the device key does not open
    left_out: Sequence[str]
    changed: Sequence[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class RestoreOptions:
    """Callbacks that open a backup, ask and show progress."""

    find_keys: Callable[[bool], Sequence[Unlocks]]  # given whether there is a passphrase
    replaces: bool = False
    confirm: Callable[[Plan], None] = lambda _: None  # may raise
    on_step: Callable[[str], None] = lambda _: None
    on_bytes: Callable[[str, int], None] = lambda _what, _size: None


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """A restore that is done."""

    plan: Plan
    aside: Path | None  # the folder with the old data
    recovery_key: str | None  # of a device key that came with the backup


def place_key(settings: Settings, key: bytes) -> str | None:
    """Write a device key that came with the backup, and return its recovery key."""
    if settings.device_key is not None or has_device_key(settings.config_dir):
        return None
    device_keys.restore_device_key(settings.config_dir, to_recovery_key(key))
    return to_recovery_key(key)


def whole_settings(reader: ArchiveReader, found: bytes | None) -> bytes | None:
    """Return the settings file with its secrets, if the backup has them."""
    whole = None if reader.keys is None else reader.keys.settings
    return found if whole is None else whole.encode()


def find_settings_risks(settings_text: bytes | None) -> list[str]:
    """Return what in a settings file could do harm, if somebody else made it."""
    return [] if settings_text is None else find_risks(settings_text.decode(errors="replace"))
