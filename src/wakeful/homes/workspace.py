"""An agent's directory. All tools read and write it through this module.

Every path is opened from the agents' directory, one directory at a time, through descriptors that follow no link. So
`..`, links (also in the root's place, or created meanwhile), devices and pipes cannot lead out of it.
"""

import errno
import fcntl
import os
import posixpath
import secrets
import shutil
import stat
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import ClassVar, Literal

from wakeful.core import ids
from wakeful.core.errors import Forbidden, Invalid, LimitReached, NotFound, WakefulError
from wakeful.core.resources import find_shortage
from wakeful.core.texts import cut, why_not_storable
from wakeful.homes.instructions import KeptByOwner, is_agents_file

Kind = Literal["file", "directory", "link", "other"]
Parts = tuple[str, ...]

MAX_PATH = 1000
MAX_DEPTH = 32  # of directories below the root
MAX_LISTED = 10_000  # entries read of one directory
_REMOVE_TRIES = 5
MAX_NAMESAKES = 1_000  # numbered files of the same name

_EXCHANGED = (errno.ENOTEMPTY, errno.ENOTDIR, errno.ELOOP, None)  # None: shutil's error for a link
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_DATA_DIR = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC  # may be a link: the server's owner chose it
# If the file was replaced by a pipe we must not block, and a terminal must not become our controlling terminal.
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class PathUnusable(Invalid):
    code = "path_unusable"

    def __init__(self, path: str, why: str) -> None:
        super().__init__(f"The path {shown(path)} cannot be used: {why}. Give a short relative path like 'notes/a.md'.")


class _PathError(WakefulError):
    """An error about a path, which takes the place of `{}` in its text."""

    text: ClassVar[str]

    def __init__(self, path: str) -> None:
        super().__init__(self.text.format(shown(path)))


class PathOutside(_PathError, Forbidden):
    code = "path_outside_workspace"
    text = "The path {} is outside your workspace. Give a path relative to it, like 'notes/a.md'."


class PathIsLink(_PathError, Forbidden):
    code = "path_is_link"
    text = "{} is a link, and links are not followed. Name the file it points to instead."


class RootIsLink(PathIsLink):
    text = "The directory {} is a link, and is not followed. Put the directory itself, or a mount, in its place."


class NoSuchPath(_PathError, NotFound):
    code = "no_such_path"
    text = "There is no {} in your workspace. Call list_files with recursive=true to see what there is."


class NotAFile(Invalid):
    code = "not_a_file"

    def __init__(self, path: str, kind: Kind) -> None:
        is_directory = kind == "directory"
        what = "a directory" if is_directory else "a device, pipe or socket"
        step = "Call list_files to see what is in it, or name a file." if is_directory else "Name an ordinary file."
        super().__init__(f"{shown(path)} is {what}, not a file. {step}")


class NotADirectory(_PathError, Invalid):
    code = "not_a_directory"
    text = "{} is not a directory. Call read_file to read it, or name a directory."


class FileTooLarge(LimitReached):
    code = "file_too_large"

    def __init__(self, path: str, size: int, most: int) -> None:
        super().__init__(
            f"{shown(path)} would have {size:,} bytes; a file may have {most:,}. Nothing was written. "
            "Split it into several files."
        )


class WorkspaceFull(LimitReached):
    code = "workspace_full"

    def __init__(self, size: int, quota: int) -> None:
        super().__init__(
            f"Your workspace would hold {size:,} bytes; it may hold {quota:,}. Nothing was written. "
            "Overwrite files you no longer need with empty content, or ask your user for more room."
        )


class TooManyFiles(LimitReached):
    code = "too_many_files"

    def __init__(self, most: int) -> None:
        super().__init__(
            f"Your workspace would hold more than {most:,} files and directories. Nothing was written. "
            "Write into a file that exists, with append=true if its content should stay."
        )


class AccessDenied(_PathError, Forbidden):
    code = "access_denied"
    text = "The server may not open {}: its permissions forbid it. Choose another path."


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkspaceLimits:
    """Limits on the content of one workspace."""

    bytes: int
    file_bytes: int
    files: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A file, directory or link in a workspace."""

    path: str  # relative to the root
    kind: Kind
    size: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TextRange:
    """A part of a file."""

    data: bytes
    size: int  # of the whole file


class Workspace:
    """One agent's directory. Its methods block, so call them from a thread."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def read(self, path: str, *, offset: int, limit: int) -> TextRange:
        """Read a part of a file."""
        folders, name = self._split_file(path)
        with self._opened(folders, path) as folder:
            _refuse_all_but_file(folder, name, path)
            with _translated(path):
                descriptor = os.open(name, _FILE, dir_fd=folder)
        try:
            status = os.fstat(descriptor)  # checked again: the file may have been replaced since
            if not stat.S_ISREG(status.st_mode):
                raise NotAFile(path, _kind(status))
            return TextRange(data=_read(descriptor, offset, limit), size=status.st_size)
        finally:
            os.close(descriptor)

    def write(
        self, path: str, data: bytes, *, append: bool, limits: WorkspaceLimits, may_instruct: bool = False
    ) -> int:
        """Write a file atomically, and return its size.

        Every tool writes through here, so this is where the owner's AGENTS.md is protected.
        """
        folders, name = self._split_file(path)
        if is_agents_file((*folders, name)) and not may_instruct:
            raise KeptByOwner(path)
        with _translated(path), self._locked():
            return self._write(path, folders, name, data, append=append, limits=limits)

    def _write(
        self, path: str, folders: Parts, name: str, data: bytes, *, append: bool, limits: WorkspaceLimits
    ) -> int:
        old = self._size(folders, name, path)
        size = len(data) + (old or 0 if append else 0)
        if size > limits.file_bytes:
            raise FileTooLarge(path, size, limits.file_bytes)
        self._refuse_over_quota(size - (old or 0), 0 if old is not None else len(folders) + 1, limits)
        before = self.read(path, offset=0, limit=limits.file_bytes).data if append and old else b""
        with self._opened(folders, path, create=True) as folder:
            _replace(folder, name, before + data)
        return len(before) + len(data)

    @contextmanager
    def _locked(self) -> Generator[None]:
        """Let one thread or process write at a time.

        Otherwise two concurrent writes could together exceed the quota, and one of two appends would be lost. Nodes
        may share a data directory, so this is a file lock. It is on the parent of the root, which the agent's confined
        programs cannot open.
        """
        make_private_directory(self._root)
        descriptor = os.open(self._root.parent, _DIRECTORY)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)

    def add(self, folder: str, name: str, data: bytes) -> str:
        """Create a file, numbered if the name is taken, and return its name. Only the server's user may read it."""
        parts = self._split(folder)
        with _translated(folder):
            make_private_directory(self._root)
            with self._opened(parts, folder, create=True) as place:
                for free in _numbered(name):
                    with suppress(FileExistsError):
                        descriptor = os.open(free, _NEW_FILE, 0o600, dir_fd=place)
                        with os.fdopen(descriptor, "wb") as file:
                            file.write(data)
                        return free
        raise TooManyFiles(MAX_NAMESAKES)

    def remove(self, folder: str) -> None:
        """Remove a directory with its content, if it exists. Links are removed, not followed."""
        parts = self._split(folder)
        if not parts:
            raise PathUnusable(folder, "it is the whole workspace")
        name = parts[-1]
        with suppress(NoSuchPath, NotADirectory, PathIsLink), self._opened(parts[:-1], folder) as above:
            if _kind(_status(above, name, folder)) == "directory":
                _remove_tree(above, name)
            else:
                os.unlink(name, dir_fd=above)

    def unlink(self, path: str) -> None:
        """Remove a file, if it exists, and its directory if that is empty then."""
        *above, folder, name = self._split(path)
        with suppress(NoSuchPath, NotADirectory, PathIsLink), self._opened(tuple(above), path) as place:
            with self._opened((*above, folder), path) as inner, suppress(FileNotFoundError):
                os.unlink(name, dir_fd=inner)
            with suppress(OSError):  # it is not empty
                os.rmdir(folder, dir_fd=place)

    def entries(self, path: str = ".", *, recursive: bool = False) -> Iterator[Entry]:
        """Yield the entries of a directory, sorted by name. Links are not followed. A missing workspace has none."""
        parts = self._split(path)
        if not parts and not self._root.exists():
            return
        with self._opened(parts, path) as folder:
            yield from _walk(folder, parts, depth=MAX_DEPTH if recursive else 0)

    def is_agents_file(self, path: str) -> bool:
        """Return whether a path, however it is written, is AGENTS.md."""
        return is_agents_file(self._split(path))

    def kind_of(self, path: str) -> Kind:
        """Return whether a path is a file, a directory or a link."""
        parts = self._split(path)
        if not parts:
            return "directory"
        with self._opened(parts[:-1], path) as folder:
            return _kind(_status(folder, parts[-1], path))

    def _size(self, folders: Parts, name: str, path: str) -> int | None:
        try:
            with self._opened(folders, path) as folder:
                return _refuse_all_but_file(folder, name, path).st_size
        except NoSuchPath:
            return None

    def _refuse_over_quota(self, more_bytes: int, more_files: int, limits: WorkspaceLimits) -> None:
        total, count = more_bytes, more_files
        for entry in self.entries(recursive=True):
            total += entry.size
            count += 1
            if count > limits.files:  # a shell may have created any number of files, so stop counting
                break
        if more_files and count > limits.files:
            raise TooManyFiles(limits.files)
        # A write that makes a full workspace smaller is allowed.
        if more_bytes > 0 and total > limits.bytes:
            raise WorkspaceFull(total, limits.bytes)

    def _split_file(self, path: str) -> tuple[Parts, str]:
        parts = self._split(path)
        if not parts or path.endswith("/"):
            raise NotAFile(path, "directory")
        return parts[:-1], parts[-1]

    def _split(self, path: str) -> Parts:
        """Split a path into its parts. `..` can be resolved as text, because no part is a link."""
        _refuse_unusable(path)
        if path.startswith("~/"):  # in the shell, the home directory is the workspace
            path = path[2:].lstrip("/")
        parts: list[str] = []
        for part in self._relative(path).split("/"):
            if part == ".." and not parts:
                raise PathOutside(path)
            if part == "..":
                parts.pop()
            elif part not in {"", "."}:
                parts.append(part)
        if len(parts) > MAX_DEPTH:
            raise PathUnusable(path, f"it is {len(parts)} directories deep, and {MAX_DEPTH} is the limit")
        return tuple(parts)

    def _relative(self, path: str) -> str:
        if not path.startswith("/"):
            return path
        straight = PurePosixPath("/" + posixpath.normpath(path).lstrip("/"))
        for root in (self._root, self._root.resolve()):
            if straight.is_relative_to(root):
                return str(straight.relative_to(root))
        # In an old transcript it may be the path of an upload on another node, or before `wakeful move`.
        owner, name = self._root.parent.name, self._root.name
        _, found, rest = str(straight).rpartition(f"/{owner}/{name}/")
        if found and ids.could_be_id(owner):
            return rest
        raise PathOutside(path)

    @contextmanager
    def _opened(self, parts: Parts, path: str, *, create: bool = False) -> Generator[int]:
        with _translated(path):
            descriptor = os.open(self._root.parents[1], _DATA_DIR)
        try:
            for part in (*self._root.parts[-2:], *parts):  # the agent's directory, and in it the root
                below = _open_directory(descriptor, part, path, create=create)
                os.close(descriptor)
                descriptor = below
            yield descriptor
        finally:
            os.close(descriptor)


def make_private_directory(path: Path) -> None:
    """Create a directory and its parent, which only the server's user may enter. Neither may be a link."""
    for folder in (path.parent, path):  # `parents=True` alone would give the parent the umask's mode
        if folder.is_symlink():
            raise RootIsLink(str(folder))
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)


def shown(path: str) -> str:
    """Quote a path for an error message, shortened if it is long."""
    return repr(cut(path, 200))


def _numbered(name: str) -> Iterator[str]:
    """Yield a name, then `name-1.txt`, `name-2.txt` and so on."""
    stem, suffix = PurePosixPath(name).stem, PurePosixPath(name).suffix
    yield name
    yield from (f"{stem}-{number}{suffix}" for number in range(1, MAX_NAMESAKES))


def _refuse_unusable(path: str) -> None:
    if not path:
        raise PathUnusable(path, "it is empty")
    if len(path) > MAX_PATH:
        raise PathUnusable(path, f"it has {len(path):,} characters, and {MAX_PATH:,} is the limit")
    if (problem := why_not_storable(path)) is not None:
        raise PathUnusable(path, f"it contains {problem}")


@contextmanager
def _translated(path: str) -> Generator[None]:
    """Translate an OSError into an error that a model can act on; others are bugs and propagate."""
    try:
        yield
    except FileNotFoundError:
        raise NoSuchPath(path) from None
    except PermissionError:
        raise AccessDenied(path) from None
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise PathIsLink(path) from None
        if error.errno == errno.ENAMETOOLONG:
            raise PathUnusable(path, "one of its names is too long") from None
        if (lacks := find_shortage(error)) is not None:
            raise lacks from None
        raise


def _status(folder: int, name: str, path: str) -> os.stat_result:
    with _translated(path):
        return os.stat(name, dir_fd=folder, follow_symlinks=False)


def _kind(status: os.stat_result) -> Kind:
    if stat.S_ISREG(status.st_mode):
        return "file"
    if stat.S_ISDIR(status.st_mode):
        return "directory"
    return "link" if stat.S_ISLNK(status.st_mode) else "other"


def _refuse_all_but_file(folder: int, name: str, path: str) -> os.stat_result:
    status = _status(folder, name, path)
    kind = _kind(status)
    if kind == "link":
        raise PathIsLink(path)
    if kind != "file":
        raise NotAFile(path, kind)
    return status


def _open_directory(folder: int, name: str, path: str, *, create: bool) -> int:
    with _translated(path):
        try:
            return os.open(name, _DIRECTORY, dir_fd=folder)
        except FileNotFoundError:
            if not create:
                raise
            with suppress(FileExistsError):  # another upload created it, or a program put a link there
                os.mkdir(name, 0o700, dir_fd=folder)
            return _open_directory(folder, name, path, create=False)
        except NotADirectoryError:
            if _kind(_status(folder, name, path)) == "link":
                raise PathIsLink(path) from None
            raise NotADirectory(path) from None


def _remove_tree(folder: int, name: str) -> None:
    """Remove a directory, also while an upload adds files to it or a program replaces it with a link.

    If it is still there after some tries, the next cleanup of uploads without a session removes it.
    """
    for _ in range(_REMOVE_TRIES):
        try:
            shutil.rmtree(name, dir_fd=folder)
        except FileNotFoundError:
            continue
        except OSError as error:
            if error.errno not in _EXCHANGED:
                raise
        else:
            return


def _read(descriptor: int, offset: int, limit: int) -> bytes:
    data = bytearray()
    while len(data) < limit and (piece := os.pread(descriptor, limit - len(data), offset + len(data))):
        data += piece
    return bytes(data)


def _replace(folder: int, name: str, data: bytes) -> None:
    """Write a temporary file, then rename it: a reader, or a crash, finds the old file or the new one."""
    draft = f".{secrets.token_hex(8)}.tmp"
    descriptor = os.open(draft, _NEW_FILE, 0o666, dir_fd=folder)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fchmod(descriptor, _mode(folder, name, descriptor))
            os.fsync(descriptor)
        os.rename(draft, name, src_dir_fd=folder, dst_dir_fd=folder)
    except BaseException:
        os.unlink(draft, dir_fd=folder)
        raise
    os.fsync(folder)


def _mode(folder: int, name: str, new: int) -> int:
    """Return the mode of the file that is replaced, so that a script stays executable."""
    try:
        status = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        status = os.fstat(new)
    return stat.S_IMODE(status.st_mode) & 0o777


def _walk(folder: int, parts: Parts, *, depth: int) -> Iterator[Entry]:
    with os.scandir(folder) as found:
        here = sorted(islice(found, MAX_LISTED), key=lambda entry: entry.name)
    for entry in here:
        try:
            status = entry.stat(follow_symlinks=False)
        except FileNotFoundError:  # gone since
            continue
        kind, below = _kind(status), (*parts, entry.name)
        yield Entry(path="/".join(below), kind=kind, size=status.st_size if kind == "file" else 0)
        if kind == "directory" and depth:
            yield from _walk_below(folder, below, depth=depth - 1)


def _walk_below(folder: int, parts: Parts, *, depth: int) -> Iterator[Entry]:
    try:
        descriptor = os.open(parts[-1], _DIRECTORY, dir_fd=folder)
    except OSError as error:  # deleted, replaced or unreadable since; naming it directly gives the error
        if (lacks := find_shortage(error)) is not None:
            raise lacks from None
        return
    try:
        yield from _walk(descriptor, parts, depth=depth)
    finally:
        os.close(descriptor)


MAX_WORKSPACE = 1024 * 1024 * 1024  # bytes
