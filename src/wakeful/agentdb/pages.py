"""Pages of a database file: read those that were committed, and write them into a file elsewhere.

The pages stay encrypted, and SQLite is not involved. On a shared store PostgreSQL has every page, and the file here is
a cache: its worker never checkpoints by itself, so that each commit can be read from the journal (SQLite's WAL). Frame
headers in it are not encrypted. How far the journal is committed is in the header of the index that SQLite shares
between processes (`-shm`); that is exact, while frames after it may be of a transaction that was rolled back.
"""

import os
import struct
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from wakeful.agentdb.file import PAGE, write_all

PIECE = 256  # pages; 1 MiB

_WAL_HEADER = 32
_FRAME_HEADER = 24
_FRAME = _FRAME_HEADER + PAGE
_INDEX = struct.Struct("=IIIBBHII8s8s8s")  # WalIndexHdr of SQLite: numbers in the order of this machine
_IS_SET_UP = 12  # place of a flag in it
_KEPT = "-wal-kept-"

Piece = tuple[list[int], list[bytes]]  # numbers of pages, and their bytes


class CacheBroken(Exception):
    """The files of a cache do not fit together: one was deleted or replaced."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """The part of a file that is saved elsewhere: everything up to a frame of its journal."""

    inode: int
    salts: bytes = b""  # of the journal; it gets others after each checkpoint
    frame: int = 0


class _Index(NamedTuple):
    frames: int
    page_count: int
    salts: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """Pages that were committed since a place, and where they are."""

    page_count: int
    place: Place
    sources: Mapping[int, tuple[Path, int]]  # by page: file and offset

    def pieces(self) -> Iterator[Piece]:
        """Read the pages, a piece at a time."""
        numbers = sorted(self.sources)
        with ExitStack() as opened:
            paths = {path for path, _ in self.sources.values()}
            handles = {path: opened.enter_context(path.open("rb")).fileno() for path in paths}
            for start in range(0, len(numbers), PIECE):
                some = numbers[start : start + PIECE]
                yield some, [self._read(handles, number) for number in some]

    def _read(self, handles: Mapping[Path, int], number: int) -> bytes:
        path, offset = self.sources[number]
        page = os.pread(handles[path], PAGE, offset)
        if len(page) != PAGE:
            raise CacheBroken
        return page


def changes_since(path: Path, place: Place | None) -> Changes | None:
    """Return the pages of a database that were committed since a place; None: none were.

    Without a place, or if the file was replaced since, these are all pages.
    """
    try:
        inode = path.stat().st_ino
        return _changes(path, inode, place if place is not None and place.inode == inode else None)
    except FileNotFoundError as error:
        raise CacheBroken from error


def keep_journal(path: Path, frames: int) -> None:
    """Copy the committed frames of a journal that is about to be emptied, until they are saved elsewhere.

    A worker calls this, so it must not open the index: closing it would end the locks that SQLite has on it.
    """
    if not frames:
        return
    copy = path.with_name(f"{path.name}{_KEPT}{len(_kept(path)):06}")
    left = _WAL_HEADER + frames * _FRAME
    with _journal(path).open("rb") as journal, copy.open("wb", buffering=0) as target:
        while left and (block := journal.read(min(left, 1024 * 1024))):
            write_all(target, block)
            left -= len(block)


def forget_kept(path: Path) -> None:
    """Delete kept journals, whose pages are saved now."""
    for copy in _kept(path):
        copy.unlink(missing_ok=True)


def remove(path: Path) -> None:
    """Delete a cache: the file and everything of SQLite beside it."""
    for each in path.parent.glob(f"{path.name}*"):
        each.unlink(missing_ok=True)


def write(path: Path, pieces: Iterator[Piece]) -> None:
    """Write pages to their places in a file."""
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        for numbers, pages in pieces:
            for number, page in zip(numbers, pages, strict=True):
                os.pwrite(handle, page, (number - 1) * PAGE)
    finally:
        os.close(handle)


def read(path: Path, numbers: Sequence[int]) -> list[bytes]:
    """Read pages of a file; its journal is not looked at."""
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return [os.pread(handle, PAGE, (number - 1) * PAGE) for number in numbers]
    finally:
        os.close(handle)


def fold_journal(path: Path, place: Place, page_count: int) -> Place:
    """Move the journal of a cache into its file, and return the new place. SQLite must not have it open."""
    if place.frame:
        sources = _frames(_journal(path), 0, place.frame, place.salts)
        write(path, Changes(page_count=page_count, place=place, sources=sources).pieces())
    return finish(path, page_count)


def finish(path: Path, page_count: int) -> Place:
    """Cut a file that pages were written to, and return its place. SQLite must not have it open."""
    os.truncate(path, page_count * PAGE)
    for end in ("-wal", "-shm"):
        path.with_name(f"{path.name}{end}").unlink(missing_ok=True)
    return Place(inode=path.stat().st_ino)


def _changes(path: Path, inode: int, place: Place | None) -> Changes | None:
    index = _read_index(path)
    journal, kept = _journal(path), _kept(path)
    has_frames = index is not None and index.frames > 0
    sources: dict[int, tuple[Path, int]] = {}
    if place is None:
        sources = {number + 1: (path, number * PAGE) for number in range(path.stat().st_size // PAGE)}
    for copy in kept:
        sources |= _frames(copy, 0, (copy.stat().st_size - _WAL_HEADER) // _FRAME)
    salts, frame = b"", 0
    if index is not None and has_frames:
        salts, frame = index.salts, index.frames
        is_going_on = place is not None and place.salts == salts
        first = place.frame if place is not None and is_going_on else 0
        if frame < first:
            raise CacheBroken
        sources |= _frames(journal, first, frame, salts)
    here = Place(inode=inode, salts=salts, frame=frame)
    if not sources:
        return None
    page_count = index.page_count if index is not None and has_frames else path.stat().st_size // PAGE
    return Changes(
        page_count=page_count,
        place=here,
        sources={number: source for number, source in sources.items() if number <= page_count},
    )


def _frames(journal: Path, first: int, end: int, salts: bytes | None = None) -> dict[int, tuple[Path, int]]:
    """Return where the pages of some frames are; a later frame of a page replaces an earlier one."""
    found: dict[int, tuple[Path, int]] = {}
    with journal.open("rb") as file:
        handle = file.fileno()
        if salts is not None and os.pread(handle, 8, 16) != salts:
            raise CacheBroken
        for number in range(first, end):
            offset = _WAL_HEADER + number * _FRAME
            header = os.pread(handle, 4, offset)
            if len(header) != 4:
                raise CacheBroken
            found[int.from_bytes(header)] = (journal, offset + _FRAME_HEADER)
    return found


def _read_index(path: Path) -> _Index | None:
    """Read the header of the shared index; None: SQLite has not opened the file, or has closed it for good."""
    try:
        with path.with_name(f"{path.name}-shm").open("rb") as file:
            first, second = file.read(_INDEX.size), file.read(_INDEX.size)
    except FileNotFoundError:
        first = second = b""
    if len(second) == _INDEX.size and first[_IS_SET_UP]:
        if first != second:
            raise CacheBroken
        *_, frames, page_count, _, salts, _ = _INDEX.unpack(first)
        return _Index(frames, page_count, salts)
    journal = _journal(path)
    if journal.exists() and journal.stat().st_size:
        raise CacheBroken
    return None


def _journal(path: Path) -> Path:
    return path.with_name(f"{path.name}-wal")


def _kept(path: Path) -> list[Path]:
    return sorted(path.parent.glob(f"{path.name}{_KEPT}*"))
