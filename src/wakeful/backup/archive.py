"""The inside of a backup: a tar file that begins with a description and ends with a manifest of sizes and hashes.

It is not compressed: most of it is encrypted, and so no member can be larger than the file itself. The manifest has a
MAC over everything under the device key, since anyone can encrypt a file to an age recipient.

When a backup is extracted, no link is followed, whatever it says.
"""

import contextlib
import hmac
import json
import os
import tarfile
from collections import deque
from collections.abc import Generator, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from dataclasses import asdict, dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self, cast

from wakeful.backup.age import BackupDamaged, Readable, derive
from wakeful.core.errors import Invalid

FORMAT = 1
HEAD = "wakeful-backup.json"
KEYS = "keys.json"
MANIFEST = "manifest.json"
TOPS = ("store", "agents", "mcp", "settings")  # of everything else in the file

PIECE = 256 * 1024  # bytes that are worked on at a time: half a millisecond, in which others may wait
_MAX_JSON = 512 * 1024 * 1024  # of the manifest: about four million files
_BLOCK = 512
_ENCODING = "utf-8"
_MODE = 0o777  # bits that are kept: never setuid

Kind = Literal["file", "folder", "link"]


class UnfitBackup(Invalid):
    """A file that was written by something else, or to do harm."""

    code = "unfit_backup"


class BackupForged(Invalid):
    code = "backup_forged"
    text = (
        "This backup was changed, or made by someone without the device key: its MAC does not fit the device key here. "
        "Nothing was changed. Use another copy of it."
    )


class BackupIsNewer(Invalid):
    code = "backup_is_newer"


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """A description of the server that a backup was made of."""

    made_at: str
    version: str  # of Wakeful
    store: Literal["embedded", "postgres"]
    schema: int  # the last migration
    device_key: str  # fingerprint
    is_store_encrypted: bool  # with the device key
    format: int = FORMAT
    agents_elsewhere: list[str] = field(default_factory=list[str])  # whose files no backup of this node has


@dataclass(frozen=True, slots=True, kw_only=True)
class Keys:
    """Secrets, only if they were asked for."""

    device_key: str  # hexadecimal
    settings: str | None  # the settings file
    mac: str = ""  # of these two, since a server's manifest does not know them; empty: Wakeful 0.2 wrote it


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A member of the tar file."""

    name: str
    kind: Kind = "file"
    size: int = 0
    mode: int = 0o600
    mtime: float = 0
    target: str = ""  # of a link


# ── Writing ─────────────────────────────────────────────────────────────────────────────────────────────────────────


class ArchiveWriter:
    """Produces the bytes of a tar file, and counts what its manifest says."""

    def __init__(self, device_key: bytes) -> None:
        self._device_key = device_key
        self._content = sha256()
        self._entries: dict[str, tuple[int, str]] = {}
        self.left_out: list[str] = []  # sockets, devices, and what could not be read
        self.changed: list[str] = []  # files that became shorter while they were read

    def small(self, entry: Entry, data: bytes = b"") -> bytes:
        """Return a whole member."""
        self._note(replace(entry, size=len(data)), sha256(data or os.fsencode(entry.target)))
        return _header(entry, len(data)) + data + _padding(len(data))

    def file(self, entry: Entry, pieces: Iterator[bytes]) -> Iterator[bytes]:
        """Yield a member of a size that is known before. What is missing at its end is filled with zeros."""
        yield _header(entry, entry.size)
        digest, left = sha256(), entry.size
        for piece in pieces:
            piece = piece[:left]
            digest.update(piece)
            left -= len(piece)
            yield piece
            if not left:
                break
        if left:
            self.changed.append(entry.name)
        while left:
            piece = bytes(min(left, PIECE))
            digest.update(piece)
            left -= len(piece)
            yield piece
        self._note(entry, digest)
        yield _padding(entry.size)

    def head(self, head: Head) -> bytes:
        _add(self._content, asdict(head))
        return _json_member(HEAD, asdict(head))

    def finish(self) -> bytes:
        """Return the manifest and the end of the tar file."""
        mac = _mac(self._device_key, [self._content.hexdigest(), self.left_out, self.changed])
        said = {"entries": self._entries, "left_out": self.left_out, "changed": self.changed, "mac": mac}
        return _json_member(MANIFEST, said) + bytes(2 * _BLOCK)

    def _note(self, entry: Entry, digest: Any) -> None:
        self._entries[entry.name] = (entry.size, digest.hexdigest())
        _add_entry(self._content, entry, digest)


def keys_member(keys: Keys) -> bytes:
    """Return the member with the keys, which comes before everything else."""
    return _json_member(KEYS, asdict(replace(keys, mac=_mac_of_keys(bytes.fromhex(keys.device_key), keys))))


def coalesced(pieces: Generator[bytes]) -> Generator[bytes]:
    """Yield pieces of about one size, whatever that of the members; the last one may be empty."""
    waiting: list[bytes] = []
    size = 0
    with closing(pieces):
        for piece in pieces:
            waiting.append(piece)
            size += len(piece)
            if size >= PIECE:
                yield b"".join(waiting)
                waiting, size = [], 0
    yield b"".join(waiting)


def _add(content: Any, value: Any) -> None:
    content.update(json.dumps(value).encode() + b"\n")


def _add_entry(content: Any, entry: Entry, digest: Any) -> None:
    _add(content, [entry.name, entry.kind, entry.size, entry.mode & _MODE, entry.target, digest.hexdigest()])


def _mac(device_key: bytes, value: Any) -> str:
    key = derive(device_key, b"", b"wakeful backup MAC")
    return hmac.new(key, json.dumps(value).encode(), sha256).hexdigest()


def _mac_of_keys(device_key: bytes, keys: Keys) -> str:
    return _mac(device_key, [KEYS, keys.device_key, keys.settings])


def _json_member(name: str, value: Any) -> bytes:
    data = json.dumps(value).encode()  # names that are not UTF-8 are kept as escapes
    return _header(Entry(name=name), len(data)) + data + _padding(len(data))


def _header(entry: Entry, size: int) -> bytes:
    info = tarfile.TarInfo(entry.name)
    info.type = {"file": tarfile.REGTYPE, "folder": tarfile.DIRTYPE, "link": tarfile.SYMTYPE}[entry.kind]
    info.size, info.mode, info.mtime, info.linkname = size, entry.mode, entry.mtime, entry.target
    return info.tobuf(tarfile.PAX_FORMAT, _ENCODING, "surrogateescape")


def _padding(size: int) -> bytes:
    return bytes(-size % _BLOCK)


# ── Reading ─────────────────────────────────────────────────────────────────────────────────────────────────────────


class _Forward:
    """A file that is read from its beginning to its end. tarfile's own for that takes three times as long."""

    def __init__(self, source: Readable) -> None:
        self._source = source
        self._position = 0

    def read(self, size: int) -> bytes:
        """Return `size` bytes; less at the end."""
        pieces: list[bytes] = []
        while size and (piece := self._source.read(size)):
            pieces.append(piece)
            size -= len(piece)
            self._position += len(piece)
        return b"".join(pieces)

    def tell(self) -> int:
        return self._position

    def seek(self, position: int) -> None:
        assert position >= self._position, "a stream cannot be read twice"
        while self._position < position and self.read(min(position - self._position, PIECE)):
            pass


class ArchiveReader:
    """Reads a tar file from its beginning to its end, and compares it with its manifest and the manifest's MAC."""

    def __init__(self, source: Readable, device_key: bytes | None = None) -> None:
        """Read the head. A device key that came with the file itself would prove nothing."""
        self._source = _Forward(source)
        self._device_key = device_key
        self._content = sha256()
        self.is_proven = False  # at the end: whether one who has the device key made it
        try:
            # pyright knows no type for a file object that only reads.
            self._tar = tarfile.open(  # noqa: SIM115  (closed with its source)
                fileobj=cast("Any", self._source), mode="r:", encoding=_ENCODING, errors="surrogateescape"
            )
        except tarfile.TarError as error:
            raise _foreign() from error
        self._members = self._iterate()
        self._seen: dict[str, tuple[int, str]] = {}
        self.keys: Keys | None = None
        first = next(self._members, None)
        if first is not None and first.name == KEYS:
            self.keys = _parse(Keys, self._read_json(first))
            first = next(self._members, None)
        if first is None or first.name != HEAD:
            raise _foreign()
        self.head = _parse_head(self._read_json(first))
        _add(self._content, asdict(self.head))
        self.left_out: list[str] = []
        self.changed: list[str] = []

    def entries(self) -> Iterator[tuple[Entry, Iterator[bytes]]]:
        """Yield every entry with its content, and raise at the end unless all is as the manifest says."""
        for member in self._members:
            if member.name == MANIFEST:
                self._compare(self._read_json(member))
                if next(self._members, None) is not None:
                    raise _unfit(member.name, "something follows the manifest")
                return
            entry = _check(member)
            if entry.name in self._seen:
                raise _unfit(entry.name, "it is there twice")
            digest = sha256(os.fsencode(entry.target))
            pieces = self._pieces(member, digest)
            yield entry, pieces
            for _ in pieces:
                pass  # what the caller did not read is part of the hash, too
            self._seen[entry.name] = (entry.size, digest.hexdigest())
            _add_entry(self._content, entry, digest)
        raise BackupDamaged("The manifest at the end of the backup is missing. Nothing was changed.")

    def _iterate(self) -> Iterator[tarfile.TarInfo]:
        try:
            while (member := self._tar.next()) is not None:
                self._tar.members = []  # pyright: ignore[reportAttributeAccessIssue]  (it would keep every one)
                yield member
        except (tarfile.TarError, UnicodeError, ValueError, EOFError) as error:
            raise BackupDamaged(f"The inside of the backup cannot be read ({error}). Nothing was changed.") from error

    def _pieces(self, member: tarfile.TarInfo, digest: Any) -> Iterator[bytes]:
        if not member.isreg():
            return
        self._source.seek(member.offset_data)
        left = member.size
        while left:
            piece = self._source.read(min(left, PIECE))
            if not piece:
                raise BackupDamaged(f"{member.name!r} in the backup is cut off. Nothing was changed.")
            left -= len(piece)
            digest.update(piece)
            yield piece

    def _read_json(self, member: tarfile.TarInfo) -> Any:
        if not member.isreg() or member.size > _MAX_JSON:
            raise _foreign()
        try:
            return json.loads(b"".join(self._pieces(member, sha256())))
        except ValueError as error:
            raise _foreign() from error

    def _compare(self, manifest: Any) -> None:
        try:
            expected = {name: (int(size), str(digest)) for name, (size, digest) in manifest["entries"].items()}
            self.left_out, self.changed = list(manifest["left_out"]), list(manifest["changed"])
        except (TypeError, ValueError, KeyError, AttributeError) as error:
            raise _foreign() from error
        for name, (size, digest) in self._seen.items():
            if name not in expected:
                raise _unfit(name, "the manifest does not have it")
            if size > expected[name][0]:
                raise _unfit(name, f"it has {size:,} bytes, and the manifest says {expected[name][0]:,}")
            if (size, digest) != expected[name]:
                raise BackupDamaged(f"{name!r} is not as the manifest says. Nothing was changed.")
        missing = [name for name in expected if name not in self._seen]
        if missing:
            raise BackupDamaged(f"{missing[0]!r} is missing in the backup. Nothing was changed.")
        if self._device_key is not None:
            self._check_macs(self._device_key, str(manifest.get("mac", "")))

    def _check_macs(self, device_key: bytes, mac: str) -> None:
        """Raise if a MAC is there and does not fit. Wakeful 0.2 wrote none."""
        macs = [(mac, _mac(device_key, [self._content.hexdigest(), self.left_out, self.changed]))]
        if self.keys is not None:
            macs.append((str(self.keys.mac), _mac_of_keys(device_key, self.keys)))
        if any(found and not hmac.compare_digest(found.encode(errors="replace"), fit.encode()) for found, fit in macs):
            raise BackupForged
        self.is_proven = all(found for found, _ in macs)


def may_be_link(name: str) -> bool:
    """Return whether a link may have this name: only what is in a workspace or in the directory of an MCP server.

    No link there is followed by the server, while anywhere else it would lead the server's own files elsewhere.
    """
    parts = name.split("/")
    return (parts[0] == "agents" and len(parts) > 3 and parts[2] == "workspace") or (
        parts[0] == "mcp" and len(parts) > 2
    )


def _check(member: tarfile.TarInfo) -> Entry:
    """Refuse everything that could lead out of the folder that a backup is restored to."""
    name = member.name
    parts = name.split("/")
    if name.startswith("/"):
        raise _unfit(name, "its path is absolute")
    if any(part in ("", ".", "..") for part in parts) or "\0" in name:
        raise _unfit(name, "its path leads elsewhere")
    if parts[0] not in TOPS:
        raise _unfit(name, "backups have no such folder")
    if member.issparse() or not (member.isreg() or member.isdir() or member.issym()):
        what = "a hard link" if member.islnk() else "a device, or something else than a file, folder or link"
        raise _unfit(name, f"it is {what}")
    if member.issym() and not may_be_link(name):
        raise _unfit(name, "it is a link outside a workspace")
    kind: Kind = "file" if member.isreg() else "folder" if member.isdir() else "link"
    return Entry(
        name=name,
        kind=kind,
        size=member.size if kind == "file" else 0,
        mode=member.mode & _MODE,
        mtime=member.mtime,
        target=member.linkname if kind == "link" else "",
    )


def _parse_head(value: Any) -> Head:
    number = cast("dict[str, Any]", value).get("format") if isinstance(value, dict) else None
    if isinstance(number, int) and number > FORMAT:
        raise BackupIsNewer(
            f"This backup has format {number}, and this version of Wakeful reads up to {FORMAT}. Nothing was changed. "
            "Restore it with the version that made it, or a later one."
        )
    return _parse(Head, value)


def _parse(kind: type[Any], value: Any) -> Any:
    try:
        return kind(**value)
    except TypeError as error:
        raise _foreign() from error


def _foreign() -> UnfitBackup:
    return UnfitBackup("This is an age file, but not a backup of Wakeful: it has another content. Nothing was changed.")


def _unfit(name: str, problem: str) -> UnfitBackup:
    return UnfitBackup(
        f"The backup has {name!r}, which is refused: {problem}. Wakeful makes no such file. Nothing was changed."
    )


# Write the files of a backup into a new folder. No link is followed, whatever the backup says.


_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_SYNC_EVERY = 16 * 1024 * 1024  # bytes: the disk writes while the next ones are decrypted
_SYNC_FROM = 1024 * 1024  # bytes of a file; smaller ones are synced together, at the end
_MAX_SYNCS = 32  # waiting, each with an open file
_WRITE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class Extraction:
    """A folder that is being filled. Large files are synced by a thread meanwhile."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._folders: list[tuple[str, Entry]] = []
        self._thread = ThreadPoolExecutor(1, "wakeful-sync")
        self._syncs: deque[Future[None]] = deque()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self._thread.shutdown()

    def add(self, path: str, entry: Entry, pieces: Iterator[bytes]) -> None:
        """Create an entry at a path below the root."""
        *folders, name = path.split("/")
        with self._opened(folders, entry.name) as folder:
            if entry.kind == "folder":
                with contextlib.suppress(FileExistsError):
                    os.mkdir(name, 0o700, dir_fd=folder)
                self._folders.append((path, entry))
            elif entry.kind == "link":
                os.symlink(entry.target, name, dir_fd=folder)
            else:
                self._write(folder, name, entry, pieces)

    def _write(self, folder: int, name: str, entry: Entry, pieces: Iterator[bytes]) -> None:
        handle, unsynced = os.open(name, _WRITE, 0o600, dir_fd=folder), 0
        try:
            for piece in pieces:
                rest = memoryview(piece)
                while rest:
                    rest = rest[os.write(handle, rest) :]
                unsynced += len(piece)
                if unsynced >= _SYNC_EVERY:
                    self._sync(handle)
                    unsynced = 0
            os.fchmod(handle, entry.mode)
            os.utime(handle, (entry.mtime, entry.mtime))
            if unsynced >= _SYNC_FROM:
                self._sync(handle)
        finally:
            os.close(handle)

    def _sync(self, handle: int) -> None:
        if len(self._syncs) >= _MAX_SYNCS:
            self._syncs.popleft().result()
        self._syncs.append(self._thread.submit(_sync, os.dup(handle)))

    def finish(self) -> None:
        """Give the folders their modes and times, the inner ones first. Raises what a sync has met."""
        for each in self._syncs:
            each.result()
        for path, entry in reversed(self._folders):
            *folders, name = path.split("/")
            with self._opened([*folders, name], entry.name) as folder:
                os.fchmod(folder, entry.mode | 0o700)
                os.utime(folder, (entry.mtime, entry.mtime))

    @contextlib.contextmanager
    def _opened(self, folders: list[str], name: str) -> Generator[int]:
        handle = os.open(self._root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            for each in folders:
                below = _open_below(handle, each, name)
                os.close(handle)
                handle = below
            yield handle
        finally:
            os.close(handle)


def _open_below(handle: int, folder: str, name: str) -> int:
    with contextlib.suppress(FileExistsError):
        os.mkdir(folder, 0o700, dir_fd=handle)
    try:
        return os.open(folder, _FOLDER, dir_fd=handle)
    except OSError as error:
        raise UnfitBackup(
            f"The backup has {name!r}, which is refused: its path leads through a link or a file. Wakeful makes no "
            "such file. Nothing was changed."
        ) from error


def _sync(handle: int) -> None:
    try:
        os.fdatasync(handle)
    finally:
        os.close(handle)
