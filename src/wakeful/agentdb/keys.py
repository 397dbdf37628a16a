"""The key of each agent's database file: random, stored next to it, and wrapped (encrypted) with the device key.

Reading the database takes both keys. So deleting the wrapped key makes every copy of the database unreadable.
"""

import errno
import fcntl
import os
import secrets
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import orjson
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from wakeful.agentdb import file as files
from wakeful.agentdb.errors import DatabaseLocked
from wakeful.core.device_key import DeviceKeyUnusable, write_draft
from wakeful.core.files import sync_folder
from wakeful.core.resources import find_shortage

KEY_FILE = "db.key"
DATABASE_FILE = "db.sqlite"
_NONCE = 12
_NO_LOCKS = (errno.EBADF, errno.ENOLCK, errno.EOPNOTSUPP)  # NFS and others cannot lock a directory


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentKeys:
    """The key of a file; during a rotation, also the previous one, which the file may still have."""

    current: bytes
    previous: bytes | None = None


def fits(agents: Path, device_key: bytes) -> bool:
    """Return whether a device key unwraps one of the keys below a folder of agents, or there is none."""
    vault = Vault(lambda agent_id: agents / agent_id, lambda: device_key)
    has_keys = False
    for path in agents.glob(f"*/{KEY_FILE}"):
        has_keys = True
        with suppress(DatabaseLocked):
            vault.open(path.parent.name)
            return True
    return not has_keys


def unwraps_any(known: Iterable[tuple[str, str]], device_key: bytes) -> bool:
    """Return whether a device key unwraps one of these key files, given as agents and texts."""
    vault = Vault(Path, lambda: device_key)
    for agent_id, text in known:
        with suppress(DatabaseLocked):
            vault.parse(agent_id, text.encode)
            return True
    return False


def with_journal(agents: Path) -> list[str]:
    """Return the agents below a folder whose database has a journal that is not empty."""
    found: list[str] = []
    for journal in agents.glob(f"*/{DATABASE_FILE}-wal"):
        file = journal.with_name(DATABASE_FILE)
        with suppress(FileNotFoundError):  # closed since
            # SQLite deletes the journal of an empty file, and with it all data there is.
            if journal.stat().st_size and file.stat().st_size:
                found.append(journal.parent.name)
    return found


class Vault:
    """Creates, wraps and unwraps the keys of agents' files."""

    def __init__(self, folder_of: Callable[[str], Path], device_key: Callable[[], bytes]) -> None:
        self.folder_of = folder_of
        self._device_key = device_key
        self._places: dict[str, tuple[str, str]] = {}  # paths of a database and its key, needed at each request
        # Unwrapped keys, with time and inode of their files, which change with the key.
        self._known: dict[str, tuple[tuple[int, int] | None, AgentKeys]] = {}

    def database_of(self, agent_id: str) -> str:
        return self._place(agent_id)[0]

    def has_database(self, agent_id: str) -> bool:
        return os.path.exists(self._place(agent_id)[0])  # noqa: PTH110  (at each request; pathlib is slower)

    def is_empty(self, agent_id: str) -> bool:
        """Return whether the file of a database is missing or empty."""
        return not files.size_of(Path(self._place(agent_id)[0]))

    def has_cut_file(self, agent_id: str) -> bool:
        """Return whether the file of a database is missing or empty, but its journal is not."""
        return files.is_cut(Path(self._place(agent_id)[0]))

    def has_folder(self, agent_id: str) -> bool:
        return self.folder_of(agent_id).is_dir()

    def has_anything(self, agent_id: str) -> bool:
        """Return whether there is a database, or what an interrupted erase has left of one."""
        folder = self.folder_of(agent_id)
        return any(folder.glob(f"{DATABASE_FILE}*")) or (folder / KEY_FILE).exists()

    def open(self, agent_id: str) -> AgentKeys:
        """Return the keys of an agent's file. Raises DatabaseLocked if they cannot be unwrapped."""
        path = self._place(agent_id)[1]
        try:
            seen = os.stat(path)  # noqa: PTH116  (at each request; pathlib is slower)
            version = seen.st_mtime_ns, seen.st_ino
        except OSError:  # `_open` reports it
            version = None
        known = self._known.get(agent_id)
        if known is not None and known[0] == version:
            return known[1]
        keys = self._open(agent_id, Path(path))
        self._known[agent_id] = (version, keys)
        return keys

    def _place(self, agent_id: str) -> tuple[str, str]:
        place = self._places.get(agent_id)
        if place is None:
            folder = self.folder_of(agent_id)
            place = self._places[agent_id] = (str(folder / DATABASE_FILE), str(folder / KEY_FILE))
        return place

    def _open(self, agent_id: str, path: Path) -> AgentKeys:
        return self.parse(agent_id, path.read_bytes)

    def parse(self, agent_id: str, read: Callable[[], bytes]) -> AgentKeys:
        """Return the keys in the content of a key file. Raises DatabaseLocked if they cannot be unwrapped."""
        try:
            stored = orjson.loads(read())
            wrapped = {name: bytes.fromhex(stored[name]) for name in ("key", "previous") if stored.get(name)}
        except FileNotFoundError:
            raise _locked(agent_id, f"its key file {KEY_FILE!r} is missing") from None
        except (OSError, ValueError, TypeError, AttributeError) as error:
            if (lacks := find_shortage(error)) is not None:  # then the file may be fine
                raise lacks from error
            raise _locked(agent_id, f"its key file {KEY_FILE!r} cannot be read") from None
        keys = {name: self._unwrap(agent_id, value) for name, value in wrapped.items()}
        if "key" not in keys:
            raise _locked(agent_id, f"its key file {KEY_FILE!r} has no key")
        return AgentKeys(current=keys["key"], previous=keys.get("previous"))

    def make(self, agent_id: str) -> AgentKeys:
        """Create a key for a new file, unless a failed attempt has left one."""
        if (self.folder_of(agent_id) / KEY_FILE).exists():
            return self.open(agent_id)
        keys = AgentKeys(current=secrets.token_bytes(32))
        self.save(agent_id, keys)
        return keys

    def save(self, agent_id: str, keys: AgentKeys) -> None:
        """Write the keys of a file to disk, before anything is encrypted with them."""
        folder = self.folder_of(agent_id)
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._save(folder / KEY_FILE, agent_id, keys)

    def _save(self, path: Path, agent_id: str, keys: AgentKeys) -> None:
        _replace(path, self._format(agent_id, keys))

    def _format(self, agent_id: str, keys: AgentKeys) -> bytes:
        stored = {"version": 1, "key": self._wrap(agent_id, keys.current)}
        if keys.previous is not None:
            stored["previous"] = self._wrap(agent_id, keys.previous)
        return orjson.dumps(stored) + b"\n"

    def open_at(self, agent_id: str, path: Path) -> AgentKeys:
        """Return the keys in another key file of an agent."""
        return self._open(agent_id, path)

    def read_file(self, agent_id: str) -> str | None:
        """Return the text of the key file, in which the keys are wrapped; None: there is none."""
        try:
            return Path(self._place(agent_id)[1]).read_text(encoding="ascii")
        except FileNotFoundError:
            return None

    def write_file(self, agent_id: str, text: str) -> None:
        """Write a key file that another node has made."""
        folder = self.folder_of(agent_id)
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        _replace(folder / KEY_FILE, text.encode("ascii"))

    def lock(self, agent_id: str) -> int | None:
        """Lock an agent's folder against other processes; None if one has it. Closing the descriptor unlocks it.

        Held while a key is changed, and while checking that a file opens with its key.
        """
        handle = os.open(self.folder_of(agent_id), os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(handle)
            return None
        except OSError as error:
            if error.errno not in _NO_LOCKS:
                os.close(handle)
                raise
        return handle

    def rewrap(self, agent_id: str, old_device_key: bytes) -> bool:
        """Wrap an agent's keys, including those of quarantined files, with the new device key instead of an old one.

        Keys that have it already stay as they are. False: neither device key unwraps one of them.
        """
        before = Vault(self.folder_of, lambda: old_device_key)
        folder = self.folder_of(agent_id)
        fits = True
        for path in (folder / KEY_FILE, *sorted(folder.glob(f"quarantine/*/{KEY_FILE}"))):
            if not path.exists():
                continue
            try:
                self._open(agent_id, path)
            except DatabaseLocked:
                try:
                    self._save(path, agent_id, before._open(agent_id, path))
                except DatabaseLocked:
                    fits = False
        return fits

    def rewrap_text(self, agent_id: str, text: str, old_device_key: bytes) -> str | None:
        """Do the same with the text of a key file; None: it has the new device key. Raises DatabaseLocked."""
        with suppress(DatabaseLocked):
            self.parse(agent_id, text.encode)
            return None
        before = Vault(self.folder_of, lambda: old_device_key)
        return self._format(agent_id, before.parse(agent_id, text.encode)).decode()

    def erase(self, agent_id: str) -> None:
        """Overwrite and delete an agent's key, so that no copy of the database can be read, then delete the files."""
        folder = self.folder_of(agent_id)
        key = folder / KEY_FILE
        self._known.pop(agent_id, None)
        if key.exists():
            with key.open("r+b") as file:
                file.write(os.urandom(max(1, key.stat().st_size)))
                file.flush()
                os.fsync(file.fileno())
            key.unlink()
        for path in (*folder.glob(DATABASE_FILE + "*"), *(folder / "snapshots").glob("*.sqlite*")):
            path.unlink(missing_ok=True)
        if folder.exists():
            sync_folder(folder)

    def set_aside(self, agent_id: str, at: str) -> Path | None:
        """Move an unreadable file and its journal into quarantine, with a copy of its key; None: there is nothing."""
        folder = self.folder_of(agent_id)
        if not self.has_anything(agent_id):
            return None
        quarantine = folder / "quarantine" / at.replace(":", "").replace("+0000", "Z")
        quarantine.mkdir(parents=True, exist_ok=True, mode=0o700)
        for path in folder.glob(DATABASE_FILE + "*"):
            path.rename(quarantine / path.name)
        key = folder / KEY_FILE
        if key.exists():
            _replace(quarantine / KEY_FILE, key.read_bytes())
        sync_folder(folder)
        return quarantine

    def _wrap(self, agent_id: str, key: bytes) -> str:
        nonce = os.urandom(_NONCE)
        return (nonce + AESGCM(self._device(agent_id)).encrypt(nonce, key, agent_id.encode())).hex()

    def _unwrap(self, agent_id: str, wrapped: bytes) -> bytes:
        try:
            return AESGCM(self._device(agent_id)).decrypt(wrapped[:_NONCE], wrapped[_NONCE:], agent_id.encode())
        except (InvalidTag, ValueError):
            problem = "the device key of this configuration directory is not the one it was made with"
            raise _locked(agent_id, problem) from None

    def _device(self, agent_id: str) -> bytes:
        try:
            return self._device_key()
        except DeviceKeyUnusable as error:
            raise _locked(agent_id, error.message) from error


def _locked(agent_id: str, why: str) -> DatabaseLocked:
    return DatabaseLocked(
        f"The database of agent {agent_id!r} is locked: {why}. Nothing was changed. Restore the device key or the key "
        "file from a backup, or the device key with the recovery key."
    )


def _replace(path: Path, data: bytes) -> None:
    """Replace a file atomically: after a crash there is the old one or the new one."""
    write_draft(path, data).replace(path)
    sync_folder(path.parent)
