"""The device key: 32 random bytes in the configuration directory, and secrets of hooks and webhooks.

It encrypts the server's own SQLite file and short secrets in the store, and wraps the keys of the agents' databases.
"""

import base64
import os
import secrets
from collections.abc import Sequence
from hashlib import blake2b
from pathlib import Path

import orjson
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from wakeful.core.errors import Invalid, Unavailable
from wakeful.core.files import sync_folder
from wakeful.core.resources import remedy_of

KEY_FILE = "device.key"
NEXT_FILE = "device.key.next"  # during a rotation
UNSHOWN_FILE = "recovery-key.unshown"  # until a start that printed the recovery key has succeeded

_CHECK_BYTES = 3
_GROUP = 4


class DeviceKeyUnusable(Unavailable):
    code = "device_key_unusable"


class BadRecoveryKey(Invalid):
    code = "bad_recovery_key"

    def __init__(self) -> None:
        super().__init__(
            "This is not a recovery key. It has 14 groups of four letters and digits, as printed by the first start."
        )


def to_recovery_key(key: bytes) -> str:
    """Return the device key in groups of letters and digits, to be written down, with a checksum against mistakes."""
    text = base64.b32encode(key + _check(key)).decode()
    return "-".join(text[place : place + _GROUP] for place in range(0, len(text), _GROUP))


def from_recovery_key(text: str) -> bytes:
    """Return the device key for a recovery key."""
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
    """Return a hash that identifies a device key; the key cannot be computed from it."""
    return blake2b(key=key, digest_size=16, person=b"wakeful device").hexdigest()


def restore_device_key(config_dir: Path, recovery_key: str) -> Path:
    """Write the device key from its recovery key. An existing one is renamed, never overwritten."""
    key = from_recovery_key(recovery_key)
    path = config_dir / KEY_FILE
    if path.exists():
        path.rename(path.with_name(f"{KEY_FILE}.{secrets.token_hex(4)}.old"))
    _make(path, key)
    note_recovery_key_shown(config_dir)  # its owner has it
    return path


def is_rotating(config_dir: Path) -> bool:
    """Return whether a rotation was begun and not ended; some keys may still be wrapped with the old device key."""
    return (config_dir / NEXT_FILE).exists()


def begin_rotation(config_dir: Path) -> tuple[bytes, bytes]:
    """Return the device key and the next one, which is created now, or was by an interrupted rotation."""
    old = _read(config_dir / KEY_FILE)
    path = config_dir / NEXT_FILE
    return old, _read(path) if path.exists() else _make(path, secrets.token_bytes(32))


def end_rotation(config_dir: Path) -> Path:
    """Replace the device key with the next one, when nothing needs the old one any more; return where that is kept."""
    path = config_dir / KEY_FILE
    kept = path.with_name(f"{KEY_FILE}.{secrets.token_hex(4)}.old")
    kept.hardlink_to(path)  # not a rename: there must be a device key at every moment
    (config_dir / NEXT_FILE).replace(path)
    return kept


def has_device_key(config_dir: Path) -> bool:
    return (config_dir / KEY_FILE).exists()


def is_recovery_key_unshown(config_dir: Path) -> bool:
    """Return whether the device key is new, and no start has succeeded in showing its recovery key yet."""
    return (config_dir / UNSHOWN_FILE).exists()


def note_recovery_key_shown(config_dir: Path) -> None:
    (config_dir / UNSHOWN_FILE).unlink(missing_ok=True)


def load_device_key(config_dir: Path) -> bytes:
    """Read the device key, or create it at first start. It is never replaced: data without its key is lost."""
    path = config_dir / KEY_FILE
    if is_rotating(config_dir):
        raise DeviceKeyUnusable(
            f"A rotation of the device key was interrupted: {str(config_dir / NEXT_FILE)!r} exists. Nothing is lost. "
            "Finish it with `wakeful key rotate`."
        )
    try:
        return _read(path)
    except FileNotFoundError:
        _note_unshown(config_dir)  # first, so that a crash in between leaves no key whose recovery key is never shown
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
            f"The device key {str(path)!r} is not 64 hexadecimal digits. Nothing was changed. Restore the right one "
            "from a backup, or with `wakeful key restore` and the recovery key; data encrypted with it cannot be read "
            "otherwise."
        )
    return key


def _check(key: bytes) -> bytes:
    return blake2b(key, digest_size=_CHECK_BYTES, person=b"wakeful recovery").digest()


def _note_unshown(config_dir: Path) -> None:
    try:
        config_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
        (config_dir / UNSHOWN_FILE).touch(mode=0o600)
    except OSError as error:
        raise _cannot_make(config_dir / KEY_FILE, error) from error


def _make(path: Path, key: bytes) -> bytes:
    """Create a key file, complete or not at all: a start that is killed here must not leave half a key."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        draft = write_draft(path, key.hex().encode() + b"\n")
        try:
            # Unlike a rename it never replaces: of two processes that start at once, one creates the key.
            path.hardlink_to(draft)
        finally:
            draft.unlink()
        sync_folder(path.parent)
    except FileExistsError:
        return _read(path)
    except OSError as error:
        raise _cannot_make(path, error) from error
    return key


def _cannot_make(path: Path, error: OSError) -> DeviceKeyUnusable:
    return DeviceKeyUnusable(
        f"The device key cannot be created at {str(path)!r}: {error.strerror}. "
        + remedy_of(error, "Make the configuration directory writable, or set WAKEFUL_CONFIG_DIR to another one.")
    )


def write_draft(path: Path, data: bytes) -> Path:
    """Write a file to be renamed to a path: durable, and readable by its owner alone."""
    draft = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
    except BaseException:
        draft.unlink(missing_ok=True)
        raise
    return draft


# Short secrets in the store, encrypted with the device key and bound to what they are for.


_NONCE = 12  # bytes


def encrypt(device_key: bytes, secret: str, bound_to: Sequence[str]) -> str:
    """Return a secret encrypted as hexadecimal text; it decrypts only with the same texts in `bound_to`."""
    nonce = os.urandom(_NONCE)
    return (nonce + AESGCM(device_key).encrypt(nonce, secret.encode(), _as_bytes(bound_to))).hex()


def decrypt(device_key: bytes, encrypted: str, bound_to: Sequence[str]) -> str | None:
    """Return a secret; None if it was encrypted with another device key or for something else."""
    try:
        stored = bytes.fromhex(encrypted)
        return AESGCM(device_key).decrypt(stored[:_NONCE], stored[_NONCE:], _as_bytes(bound_to)).decode()
    except (InvalidTag, ValueError):
        return None


def rewrap(old: bytes, new: bytes, encrypted: str, bound_to: Sequence[str]) -> str | None:
    """Return a secret encrypted with a new device key; None if it has that one already, or neither decrypts it."""
    if decrypt(new, encrypted, bound_to) is not None:
        return None
    secret = decrypt(old, encrypted, bound_to)
    return None if secret is None else encrypt(new, secret, bound_to)


def _as_bytes(texts: Sequence[str]) -> bytes:
    # As JSON, so that no other texts give the same bytes.
    return orjson.dumps(list(texts))


# Encrypt the secrets of hooks and webhooks with the device key, bound to what they are for.


_PURPOSE = "wakeful hook secret 1"


def encrypt_secret(device_key: bytes, secret: str, hook_id: str) -> str:
    """Return a secret encrypted as hexadecimal text; it decrypts only for the same hook."""
    return encrypt(device_key, secret, (_PURPOSE, hook_id))


def decrypt_secret(device_key: bytes, encrypted: str, hook_id: str) -> str | None:
    """Return a secret; None if it was encrypted with another device key or for another hook."""
    return decrypt(device_key, encrypted, (_PURPOSE, hook_id))


def rewrap_secret(old: bytes, new: bytes, hook_id: str, encrypted: str) -> str | None:
    """Return a secret encrypted with a new device key; None if it has that one already, or neither decrypts it."""
    return rewrap(old, new, encrypted, (_PURPOSE, hook_id))
