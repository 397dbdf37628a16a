"""The device key: 32 random bytes in the configuration directory that everything encrypted here hangs on."""

import base64
import os
import secrets
from hashlib import blake2b
from pathlib import Path

from wakeful.domain.errors import Invalid, Unavailable

FILE_NAME = "device.key"
NEXT_FILE = "device.key.next"  # while a rotation is under way

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
            f"The device key {str(path)!r} is not 64 hexadecimal digits. Restore it from a backup; "
            "what was encrypted with it cannot be read otherwise."
        )
    return key


def _check(key: bytes) -> bytes:
    return blake2b(key, digest_size=_CHECK_BYTES, person=b"wakeful recovery").digest()


def _make(path: Path, key: bytes) -> bytes:
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        # O_EXCL: of two processes that start at once, one makes the key and the other fails instead of replacing it.
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(handle, "w", encoding="ascii") as file:
            file.write(key.hex() + "\n")
            file.flush()
            os.fsync(file.fileno())
    except FileExistsError:
        return _read(path)
    except OSError as error:
        raise DeviceKeyUnusable(
            f"The device key cannot be made at {str(path)!r}: {error.strerror}. "
            "Make the configuration directory writable, or set WAKEFUL_CONFIG_DIR to another one."
        ) from error
    return key
