"""Compare the files of an agent on this node with those of its home, in both directions.

Three states are compared: the files as they were when they last were equal (known), as they are here, and as they are
in PostgreSQL. A file that has changed only here stays, and is saved; any other is made as it is in PostgreSQL. If it
has changed on both sides, as when programs on two nodes write it at once, the one here is kept under another name.
"""

import asyncio
import logging
import os
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from wakeful.domain.agents.homes import Home, HomeFile
from wakeful.service.homes import files as home_files
from wakeful.service.homes.disk import on_disk
from wakeful.service.homes.files import PIECE, FileChanging, KnownFiles, Seen
from wakeful.store.store import Tx

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
        scan = home_files.scan(self._root, folders)
        self._log_left_out(known, scan.left_out)
        changed: dict[str, tuple[Seen, HomeFile]] = {}
        same: dict[str, tuple[Seen, HomeFile]] = {}
        for path, seen in scan.found.items():
            before = known.files.get(path)
            if path in skipped or (before is not None and before[0] == seen):
                continue
            try:
                file = home_files.describe(self._root, path, seen, self._key)
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
            for piece in home_files.read(self._root, file.path, file.kind, file.size):
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
        here = await on_disk(home_files.scan, self._root, folders)
        changed = known.changed_in(here) - known.void
        for path in (known.files.keys() | known.void) - listed.keys():
            known.files.pop(path, None)
            if path not in changed:
                await on_disk(home_files.remove, self._root, path)
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
                aside = await on_disk(home_files.set_aside, self._root, file.path)
                known.conflicts |= {} if aside is None else {file.path: aside}
            to_write.append(file)
        known.damaged.clear()
        async for file, pieces in self._contents(tx, to_write):
            if pieces is None:
                known.damaged[file.path] = file.digest
                continue
            known.files[file.path] = await on_disk(home_files.write, self._root, file, iter(pieces)), file
        known.void.clear()

    def _is_same(self, file: HomeFile, seen: Seen) -> bool:
        try:
            return home_files.describe(self._root, file.path, seen, self._key) == file
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
