"""Files of an agent's home on disk: find them, read them, write them, without following links.

A program of the agent may run in the workspace meanwhile, and replace a folder by a link. So every path is opened from
its root one folder at a time, and no link is followed.
"""

import asyncio
import logging
import os
import secrets
import stat
from collections.abc import AsyncIterator, Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import count
from pathlib import Path, PurePosixPath
from posixpath import normpath
from typing import ParamSpec, TypeVar

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from wakeful.agentdb.errors import DatabaseUnavailable
from wakeful.core.records import Home, HomeFile
from wakeful.core.resources import find_shortage
from wakeful.core.texts import why_not_storable
from wakeful.store.store import Tx

PIECE = 1024 * 1024  # bytes
MAX_DEPTH = 64  # of folders
_MAX_STEM = 200  # bytes of a name that gets another end

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC  # a fifo must not make us wait
_WRITE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class FileChanging(Exception):
    """A file changed while it was read."""

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self.path = path


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """A file, link or empty folder as it was found; equal if it has not changed."""

    kind: str  # file, link or folder
    mode: int
    size: int
    changed_at: tuple[int, int]  # of the content and of the inode, in nanoseconds
    inode: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Scan:
    """Everything that was found below some folders."""

    found: Mapping[str, Seen]  # by path
    left_out: Sequence[str]  # paths of fifos, sockets, devices, and links that lead out of their folder


@dataclass(frozen=True, slots=True, kw_only=True)
class FileTroubles:
    """Files of an agent that a person should know of."""

    conflicts: Mapping[str, str]  # changed here and on another node at once: by path, where the one from here is kept
    damaged: Sequence[str]  # paths of files that PostgreSQL has not whole


@dataclass(slots=True)
class KnownFiles:
    """The files here that are equal to those of a home, with their digests, as of one of its changes."""

    seq: int = 0  # of a home without files
    home: Home | None = None  # as it was then
    files: dict[str, tuple[Seen, HomeFile]] = field(default_factory=dict[str, tuple[Seen, HomeFile]])
    left_out: set[str] = field(default_factory=set[str])  # paths that were logged
    void: set[str] = field(default_factory=set[str])  # paths with changes here that must not be saved
    conflicts: dict[str, str] = field(default_factory=dict[str, str])  # see FileTroubles; until they are reported
    damaged: dict[str, str | None] = field(default_factory=dict[str, str | None])  # with their digests
    reported: dict[str, str | None] = field(default_factory=dict[str, str | None])  # the same, of which a notice tells

    def changed_in(self, scan: Scan) -> set[str]:
        """Return the paths that are not as they were when they last were equal to the home's."""
        changed = {path for path, seen in scan.found.items() if path not in self.files or self.files[path][0] != seen}
        return changed | (self.files.keys() - scan.found.keys())

    def take_troubles(self) -> FileTroubles:
        """Return what was not reported yet."""
        conflicts, self.conflicts = self.conflicts, {}
        damaged = [path for path, digest in self.damaged.items() if self.reported.get(path, "") != digest]
        self.reported = dict(self.damaged)
        return FileTroubles(conflicts=conflicts, damaged=damaged)


def scan_files(root: Path, folders: Sequence[str]) -> Scan:
    """Find the files below some folders of a root."""
    found: dict[str, Seen] = {}
    left_out: list[str] = []
    for name in folders:
        try:
            handle = os.open(root / name, _FOLDER)
        except (FileNotFoundError, NotADirectoryError):
            continue
        _scan_folder(handle, name, found, left_out, is_top=True)
    return Scan(found=found, left_out=left_out)


def _scan_folder(handle: int, path: str, found: dict[str, Seen], left_out: list[str], *, is_top: bool = False) -> None:
    is_empty = True
    try:
        with os.scandir(handle) as entries:
            names = sorted(entry.name for entry in entries)
        for name in names:
            is_empty = False
            with suppress(FileNotFoundError):  # deleted meanwhile
                _scan_entry(handle, name, f"{path}/{name}", found, left_out)
        if is_empty and not is_top:
            found[path] = _seen("folder", os.fstat(handle))
    finally:
        os.close(handle)


def _scan_entry(handle: int, name: str, path: str, found: dict[str, Seen], left_out: list[str]) -> None:
    status = os.stat(name, dir_fd=handle, follow_symlinks=False)
    is_text = why_not_storable(name) is None
    if stat.S_ISREG(status.st_mode) and is_text:
        found[path] = _seen("file", status)
    elif stat.S_ISLNK(status.st_mode) and is_text and _stays_inside(path, os.readlink(name, dir_fd=handle)):
        found[path] = _seen("link", status)
    elif stat.S_ISDIR(status.st_mode) and is_text and path.count("/") < MAX_DEPTH:
        with suppress(NotADirectoryError):  # replaced meanwhile
            _scan_folder(os.open(name, _FOLDER, dir_fd=handle), path, found, left_out)
    else:
        left_out.append(path)


def _stays_inside(path: str, target: str) -> bool:
    """Return whether a link leads to a place in its own top folder, which every node has."""
    if target.startswith("/") or why_not_storable(target) is not None:
        return False
    top, *_ = path.split("/")
    place = normpath(str(PurePosixPath(path).parent / target))
    return place == top or place.startswith(f"{top}/")


def _seen(kind: str, status: os.stat_result) -> Seen:
    return Seen(
        kind=kind,
        mode=stat.S_IMODE(status.st_mode),
        size=0 if kind == "folder" else status.st_size,
        changed_at=(0, 0) if kind == "folder" else (status.st_mtime_ns, status.st_ctime_ns),
        inode=status.st_ino,
    )


def describe(root: Path, path: str, seen: Seen, key: bytes) -> HomeFile:
    """Return an entry with the keyed digest of its content. Raises FileChanging or FileNotFoundError."""
    digest = None
    if seen.kind != "folder":
        content, size = blake2b(key=key, digest_size=32), 0
        for piece in read(root, path, seen.kind, seen.size):
            content.update(piece)
            size += len(piece)
        if size != seen.size:
            raise FileChanging(path)
        digest = content.hexdigest()
    return HomeFile(path=path, kind=seen.kind, mode=seen.mode, size=seen.size, digest=digest)


def read(root: Path, path: str, kind: str, size: int) -> Iterator[bytes]:
    """Read a file of this size, or the target of a link, in pieces. What is appended meanwhile is left for later."""
    *folders, name = path.split("/")
    with _opened_folder(root, folders) as folder:
        if kind == "link":
            try:
                yield os.readlink(name, dir_fd=folder).encode()
            except OSError as error:
                raise FileChanging(path) from error
            return
        try:
            handle = os.open(name, _READ, dir_fd=folder)
        except OSError as error:
            raise FileChanging(path) from error
    try:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise FileChanging(path)
        while size and (piece := os.read(handle, min(PIECE, size))):
            size -= len(piece)
            yield piece
    finally:
        os.close(handle)


def write(root: Path, file: HomeFile, pieces: Iterator[bytes]) -> Seen:
    """Write an entry in place of what is there now; a file appears complete or not at all."""
    *folders, name = file.path.split("/")
    with _opened_folder(root, folders, make=True) as folder:
        if file.kind == "folder":
            _remove_at(folder, name)
            os.mkdir(name, file.mode, dir_fd=folder)
        elif file.kind == "link":
            _remove_at(folder, name)
            os.symlink(b"".join(pieces).decode(), name, dir_fd=folder)
        else:
            draft = f".{secrets.token_hex(8)}.brought"
            try:
                _write_file(folder, draft, file.mode, pieces)
                with suppress(OSError):
                    os.rmdir(name, dir_fd=folder)  # a folder is in its place
                os.rename(draft, name, src_dir_fd=folder, dst_dir_fd=folder)
            finally:
                with suppress(FileNotFoundError):
                    os.unlink(draft, dir_fd=folder)
        return _seen(file.kind, os.stat(name, dir_fd=folder, follow_symlinks=False))


def set_aside(root: Path, path: str) -> str | None:
    """Give an entry another name, and return its new path; None: there is nothing."""
    *folders, name = path.split("/")
    plain = PurePosixPath(name)
    stem = plain.stem.encode()[:_MAX_STEM].decode(errors="ignore")
    try:
        with _opened_folder(root, folders) as folder:
            with os.scandir(folder) as entries:
                taken = {entry.name for entry in entries}
            names = (f"{stem}.conflict-{number}{plain.suffix}" for number in count(1))
            copy = next(each for each in names if each not in taken)
            os.rename(name, copy, src_dir_fd=folder, dst_dir_fd=folder)
    except (FileNotFoundError, NotADirectoryError):
        return None
    return "/".join([*folders, copy])


def _write_file(folder: int, name: str, mode: int, pieces: Iterator[bytes]) -> None:
    handle = os.open(name, _WRITE, 0o600, dir_fd=folder)
    try:
        for piece in pieces:
            rest = memoryview(piece)
            while rest:
                rest = rest[os.write(handle, rest) :]
        os.fchmod(handle, mode)
    finally:
        os.close(handle)


def remove(root: Path, path: str) -> None:
    """Delete an entry, and folders that are empty after that; each but the top one is listed if it is to stay."""
    *folders, name = path.split("/")
    try:
        with _opened_folder(root, folders) as folder:
            _remove_at(folder, name)
    except OSError:  # it is gone already
        return
    while len(folders) > 1:
        *folders, name = folders
        try:
            with _opened_folder(root, folders) as folder:
                os.rmdir(name, dir_fd=folder)
        except OSError:  # not empty
            return


def _remove_at(folder: int, name: str) -> None:
    try:
        os.unlink(name, dir_fd=folder)
    except FileNotFoundError:
        return
    except (IsADirectoryError, PermissionError):
        os.rmdir(name, dir_fd=folder)


@contextmanager
def _opened_folder(root: Path, folders: Sequence[str], *, make: bool = False) -> Generator[int]:
    handle = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for name in folders:
            below = _open_below(handle, name, make=make)
            os.close(handle)
            handle = below
        yield handle
    finally:
        os.close(handle)


def _open_below(handle: int, name: str, *, make: bool) -> int:
    if name in ("", ".", ".."):
        raise NotADirectoryError(name)
    try:
        return os.open(name, _FOLDER, dir_fd=handle)
    except FileNotFoundError:
        if not make:
            raise
    except OSError:  # a file or a link is in its place
        if not make:
            raise
        os.unlink(name, dir_fd=handle)
    os.mkdir(name, 0o755, dir_fd=handle)
    return os.open(name, _FOLDER, dir_fd=handle)


# Compare the files of an agent on this node with those of its home, in both directions.
#
# Three states are compared: the files as they were when they last were equal (known), as they are here, and as they are
# in PostgreSQL. A file that has changed only here stays, and is saved; any other is made as it is in PostgreSQL. If it
# has changed on both sides, as when programs on two nodes write it at once, the one here is kept under another name.


log = logging.getLogger(__name__)

_NONCE = 12
_MAX_NAMED = 20  # paths in the log
_MAX_BATCH = 200  # small files of one statement
_SMALL = 16 * 1024  # bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class FileChanges:
    """Files here that differ from those of a home."""

    changed: dict[str, tuple[Seen, HomeFile]]
    same: dict[str, tuple[Seen, HomeFile]]  # touched, but with the same content and mode
    deleted: list[str]

    def __bool__(self) -> bool:
        return bool(self.changed or self.deleted)


class FileSync:
    """The files of one agent, with the key that their contents are encrypted with."""

    def __init__(self, agent_id: str, root: Path, key: bytes) -> None:
        self._agent_id = agent_id
        self._root = root
        self._key = key
        self._cipher = AESGCM(key)

    # ── From here to PostgreSQL ─────────────────────────────────────────────────────────────────────────────────────

    def find_changes(self, known: KnownFiles, folders: Sequence[str], skipped: set[str]) -> FileChanges:
        """Return what has changed here below some folders. Skipped paths count as unchanged."""
        scan = scan_files(self._root, folders)
        self._log_left_out(known, scan.left_out)
        changed: dict[str, tuple[Seen, HomeFile]] = {}
        same: dict[str, tuple[Seen, HomeFile]] = {}
        for path, seen in scan.found.items():
            before = known.files.get(path)
            if path in skipped or (before is not None and before[0] == seen):
                continue
            try:
                file = describe(self._root, path, seen, self._key)
            except (FileChanging, FileNotFoundError, NotADirectoryError):
                continue  # the next comparison finds it
            (same if before is not None and before[1] == file else changed)[path] = seen, file
        tops = {f"{folder}/" for folder in folders}
        deleted = [
            path
            for path in known.files
            if path not in scan.found and path not in skipped and any(path.startswith(top) for top in tops)
        ]
        return FileChanges(changed=changed, same=same, deleted=deleted)

    def _log_left_out(self, known: KnownFiles, paths: Sequence[str]) -> None:
        """Name fifos, sockets, devices and links out of their folder, once each."""
        new = sorted(set(paths) - known.left_out)
        known.left_out |= set(new)
        if new:
            log.warning("files left out of a home", extra={"agent_id": self._agent_id, "paths": new[:_MAX_NAMED]})

    async def save(self, tx: Tx, files_key: str, changes: FileChanges, *, of_database: bool) -> Home:
        """Save changed files as part of a change of the home. Raises FileChanging if one changes meanwhile."""
        files = [file for _, file in changes.changed.values()]
        wanted = {file.digest: file for file in files if file.digest is not None}
        present = await tx.homes.contents_present(self._agent_id, list(wanted))
        batch: list[tuple[str, int, bytes]] = []
        size = 0
        for digest, file in wanted.items():
            if digest in present:
                continue
            pieces = self._encrypted(file)
            while (piece := await on_disk(next, pieces, None)) is not None:
                batch.append(piece)
                size += len(piece[2])
                if size >= PIECE:
                    await tx.homes.add_contents(self._agent_id, batch)
                    batch, size = [], 0
        if batch:
            await tx.homes.add_contents(self._agent_id, batch)
        return await tx.homes.save_files(self._agent_id, files_key, files, changes.deleted, of_database=of_database)

    def _encrypted(self, file: HomeFile) -> Iterator[tuple[str, int, bytes]]:
        assert file.digest is not None
        content, number = blake2b(key=self._key, digest_size=32), 0
        try:
            for piece in read(self._root, file.path, file.kind, file.size):
                content.update(piece)
                nonce = os.urandom(_NONCE)
                yield file.digest, number, nonce + self._cipher.encrypt(nonce, piece, self._bound(file.digest, number))
                number += 1
        except (FileNotFoundError, NotADirectoryError) as error:
            raise FileChanging(file.path) from error
        if content.hexdigest() != file.digest:
            raise FileChanging(file.path)

    # ── From PostgreSQL to here ─────────────────────────────────────────────────────────────────────────────────────

    async def bring(self, tx: Tx, known: KnownFiles, folders: Sequence[str]) -> None:
        """Make the files here as they are in PostgreSQL, except those that have changed only here.

        One that is damaged there is left out.
        """
        listed = await tx.homes.files(self._agent_id, folders)
        here = await on_disk(scan_files, self._root, folders)
        changed = known.changed_in(here) - known.void
        for path in (known.files.keys() | known.void) - listed.keys():
            known.files.pop(path, None)
            if path not in changed:
                await on_disk(remove, self._root, path)
        news = [
            file
            for path, file in listed.items()
            if path in known.void or path not in known.files or known.files[path][1] != file
        ]
        to_write: list[HomeFile] = []
        for file in sorted(news, key=lambda file: file.path):
            if file.path in changed:
                seen = here.found.get(file.path)
                if seen is not None and await asyncio.to_thread(self._is_same, file, seen):
                    known.files[file.path] = seen, file
                    continue
                aside = await on_disk(set_aside, self._root, file.path)
                known.conflicts |= {} if aside is None else {file.path: aside}
            to_write.append(file)
        known.damaged.clear()
        async for file, pieces in self._contents(tx, to_write):
            if pieces is None:
                known.damaged[file.path] = file.digest
                continue
            known.files[file.path] = await on_disk(write, self._root, file, iter(pieces)), file
        known.void.clear()

    def _is_same(self, file: HomeFile, seen: Seen) -> bool:
        try:
            return describe(self._root, file.path, seen, self._key) == file
        except (FileChanging, FileNotFoundError, NotADirectoryError):
            return False

    async def _contents(self, tx: Tx, files: Sequence[HomeFile]) -> AsyncIterator[tuple[HomeFile, list[bytes] | None]]:
        for start in range(0, len(files), _MAX_BATCH):
            some = files[start : start + _MAX_BATCH]
            small = [file.digest for file in some if file.digest is not None and file.size <= _SMALL]
            first = await tx.homes.first_pieces(self._agent_id, small)
            for file in some:
                yield file, await self._pieces(tx, file, first)

    async def _pieces(self, tx: Tx, file: HomeFile, first: dict[str, bytes]) -> list[bytes] | None:
        """Return the content of a file; None: PostgreSQL has it only in part, or damaged."""
        if file.digest is None or file.size == 0:
            return []
        pieces: list[bytes] = []
        try:
            if file.digest in first:
                return [self._decrypt(file, 0, first[file.digest])]
            while sum(map(len, pieces)) < file.size:
                piece = await tx.homes.piece(self._agent_id, file.digest, len(pieces))
                if piece is None:
                    return None
                pieces.append(self._decrypt(file, len(pieces), piece))
        except InvalidTag:
            return None
        return pieces

    def _decrypt(self, file: HomeFile, number: int, piece: bytes) -> bytes:
        assert file.digest is not None
        return self._cipher.decrypt(piece[:_NONCE], piece[_NONCE:], self._bound(file.digest, number))

    def _bound(self, digest: str, number: int) -> bytes:
        return f"{self._agent_id} {digest} {number}".encode()


# Work on this node's disk while a transaction is open, whose errors must not be taken for those of PostgreSQL.


P = ParamSpec("P")
T = TypeVar("T")


async def on_disk(act: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run a function in a thread. Raises DiskFull or another error that says whose disk it is."""
    try:
        return await asyncio.to_thread(act, *args, **kwargs)
    except OSError as error:
        raise find_shortage(error) or DatabaseUnavailable(
            f"The disk of this node could not be read or written ({error.strerror}). Nothing was changed. Try again; "
            "if it happens again, the server's operator must look at it."
        ) from None


# Tables of a database that is not used any more, written into the agent's workspace for people and the agent.


def write_tables(folder: Path, tables: Mapping[str, bytes]) -> None:
    """Write each table as a CSV file."""
    folder.mkdir(parents=True, mode=0o700)
    for table, content in tables.items():
        (folder / f"{table.replace('/', '_')}.csv").write_bytes(content)
