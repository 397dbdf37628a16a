"""The device key: 32 random bytes in the configuration directory that everything encrypted here hangs on."""

import base64
import os
import secrets
from hashlib import blake2b
from pathlib import Path

from wakeful.domain.errors import Invalid, Unavailable

FILE_NAME = "device.key"
NEXT_FILE = "device.key.next"  # while a rotation is under way
UNSHOWN_FILE = "recovery-key.unshown"  # until a start that printed the recovery key has succeeded

_CHECK_BYTES = 3
_GROUP = 4


class DeviceKeyUnusable(Unavailable):
    code = "device_key_unusable"


class BadRecoveryKey(Invalid):
    code = "bad_recovery_key"

    def __init__(self) -> None:
        super().__init__(
            "This is not a recovery key. It has 14 groups of four letters and digits, such as the first start printed."
        )


def to_recovery_key(key: bytes) -> str:
    """Write the device key for paper: in groups, with a check against slips of the pen."""
    text = base64.b32encode(key + _check(key)).decode()
    return "-".join(text[place : place + _GROUP] for place in range(0, len(text), _GROUP))


def from_recovery_key(text: str) -> bytes:
    """Read the device key from paper."""
    letters = "".join(text.upper().replace("-", " ").split()).replace("0", "O").replace("1", "I").replace("8", "B")
    try:
        whole = base64.b32decode(letters)
    except ValueError:
        raise BadRecoveryKey from None
    key, check = whole[:-_CHECK_BYTES], whole[-_CHECK_BYTES:]
    if len(key) != 32 or check != _check(key):
        raise BadRecoveryKey
    return key


def fingerprint(key: bytes) -> str:
    """Return what a device key is recognised by; the key cannot be computed from it."""
    return blake2b(key=key, digest_size=16, person=b"wakeful device").hexdigest()


def restore_device_key(config_dir: Path, recovery_key: str) -> Path:
    """Put the device key back from its recovery key. One that is there is moved aside, never overwritten."""
    key = from_recovery_key(recovery_key)
    path = config_dir / FILE_NAME
    if path.exists():
        path.rename(path.with_name(f"{FILE_NAME}.{secrets.token_hex(4)}.old"))
    _make(path, key)
    note_recovery_key_shown(config_dir)  # it was read from paper
    return path


def is_rotating(config_dir: Path) -> bool:
    """Tell whether a rotation was begun and not ended: then there are things with the old key and with the new one."""
    return (config_dir / NEXT_FILE).exists()


def begin_rotation(config_dir: Path) -> tuple[bytes, bytes]:
    """Return the device key and the one that follows it, which is made now or was by a rotation that was cut off."""
    old = _read(config_dir / FILE_NAME)
    path = config_dir / NEXT_FILE
    return old, _read(path) if path.exists() else _make(path, secrets.token_bytes(32))


def end_rotation(config_dir: Path) -> Path:
    """Let the next key take the place of the device key, when nothing needs the old one any more. That is kept."""
    path = config_dir / FILE_NAME
    kept = path.with_name(f"{FILE_NAME}.{secrets.token_hex(4)}.old")
    kept.hardlink_to(path)  # so that there is a device key at every moment
    (config_dir / NEXT_FILE).replace(path)
    return kept


def has_device_key(config_dir: Path) -> bool:
    return (config_dir / FILE_NAME).exists()


def is_recovery_key_unshown(config_dir: Path) -> bool:
    """Tell whether a start made the device key and none has succeeded since in showing its recovery key."""
    return (config_dir / UNSHOWN_FILE).exists()


def note_recovery_key_shown(config_dir: Path) -> None:
    (config_dir / UNSHOWN_FILE).unlink(missing_ok=True)


def load_device_key(config_dir: Path) -> bytes:
    """Read the device key, or make it at first start. It is never replaced: data without its key is lost."""
    path = config_dir / FILE_NAME
    if is_rotating(config_dir):
        raise DeviceKeyUnusable(
            f"A rotation of the device key was cut off: {str(config_dir / NEXT_FILE)!r} is there. Nothing is lost. "
            "Finish it with `wakeful key rotate`."
        )
    try:
        return _read(path)
    except FileNotFoundError:
        _note_unshown(config_dir)  # first: a crash in between leaves no key that nobody was shown
        return _make(path, secrets.token_bytes(32))
    except OSError as error:
        raise DeviceKeyUnusable(f"The device key {str(path)!r} cannot be read: {error.strerror}.") from error


def _read(path: Path) -> bytes:
    text = path.read_text(encoding="ascii", errors="replace").strip()
    try:
        key = bytes.fromhex(text)
    except ValueError:
        key = b""
    if len(key) != 32:
        raise DeviceKeyUnusable(
            f"The device key {str(path)!r} is not 64 hexadecimal digits. Nothing was changed. Put the right one back "
            "from a backup, or with `wakeful key restore` and the recovery key; what was encrypted with it cannot be "
            "read otherwise."
        )
    return key


def _check(key: bytes) -> bytes:
    return blake2b(key, digest_size=_CHECK_BYTES, person=b"wakeful recovery").digest()


def _note_unshown(config_dir: Path) -> None:
    try:
        config_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
        (config_dir / UNSHOWN_FILE).touch(mode=0o600)
    except OSError as error:
        raise _cannot_make(config_dir / FILE_NAME, error) from error


def _make(path: Path, key: bytes) -> bytes:
    """Make a key file, whole or not at all: a start that is killed here must not leave half a key."""
    draft = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            with os.fdopen(handle, "w", encoding="ascii") as file:
                file.write(key.hex() + "\n")
                file.flush()
                os.fsync(file.fileno())
            # Unlike a rename it never replaces: of two processes that start at once, one makes the key.
            path.hardlink_to(draft)
        finally:
            draft.unlink()
        _sync(path.parent)
    except FileExistsError:
        return _read(path)
    except OSError as error:
        raise _cannot_make(path, error) from error
    return key


def _cannot_make(path: Path, error: OSError) -> DeviceKeyUnusable:
    return DeviceKeyUnusable(
        f"The device key cannot be made at {str(path)!r}: {error.strerror}. "
        "Make the configuration directory writable, or set WAKEFUL_CONFIG_DIR to another one."
    )


def _sync(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
