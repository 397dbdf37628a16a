"""The device key: 32 random bytes in the configuration directory that everything encrypted here hangs on."""

import os
import secrets
from pathlib import Path

from wakeful.domain.errors import Unavailable

FILE_NAME = "device.key"


class DeviceKeyUnusable(Unavailable):
    code = "device_key_unusable"


def load_device_key(config_dir: Path) -> bytes:
    """Read the device key, or make it at first start. It is never replaced: data without its key is lost."""
    path = config_dir / FILE_NAME
    try:
        return _read(path)
    except FileNotFoundError:
        return _make(path)
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


def _make(path: Path) -> bytes:
    key = secrets.token_bytes(32)
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
