"""The data directory of this node, and agents whose files an earlier version has left in that of another one.

On a shared store agents' databases and files are in PostgreSQL. Before that, an agent was bound to the data directory
of one node. Until that node has moved the files into PostgreSQL, which it does when it starts, no other node may take
the agent for one without files. With an embedded store these checks do nothing.
"""

import asyncio
import logging
import socket
from datetime import UTC, datetime, timedelta
from pathlib import Path

from wakeful.agentdb.keys import agent_keys
from wakeful.agentdb.keys.keys import fingerprint
from wakeful.clock import Clock
from wakeful.domain.agents.directories import Directory, MemoryElsewhere, NotMoved
from wakeful.domain.errors import Unavailable
from wakeful.service.agents import directory_file
from wakeful.service.agents.directory_file import DirectoryFile
from wakeful.store.drivers.database import SideConnection
from wakeful.store.rows import to_micros
from wakeful.store.store import Store, Tx

log = logging.getLogger(__name__)

_EVER = datetime(1970, 1, 1, tzinfo=UTC)


class OtherDeviceKey(Unavailable):
    code = "other_device_key"


class Directories:
    """The data directory of this node, and the agents bound to it or to another one."""

    def __init__(
        self, store: Store, clock: Clock, data_dir: Path, device_key: bytes, owner: str, lease: timedelta
    ) -> None:
        self._store = store
        self._clock = clock
        self._data_dir = data_dir
        self._agents = data_dir / "agents"
        self._device_key = device_key
        self._fingerprint = fingerprint(device_key)
        self._owner = owner
        self.lease = lease
        self._ours: set[str] = set()  # agents without files in another directory; no new ones are put there
        self._unmoved: dict[str, str] = {}  # agents whose files here could not be moved, and why
        self.id = ""  # set by `enter`

    async def enter(self) -> None:
        """Read the id of the data directory, compare device keys, and bind the agents that have files in it."""
        file = await asyncio.to_thread(directory_file.load, self._data_dir)
        self.id = file.id
        if self._store.is_shared:
            await self._register(file)

    async def arrive(self) -> None:
        """Record that this node is running, and release the runs that waited for its directory."""
        if not self._store.is_shared:
            return
        now = self._clock.now()

        async def work(tx: Tx) -> None:
            await tx.directories.delete_dead_nodes(self.alive_since(now))
            await tx.directories.see_node(self._owner, self.id, self._fingerprint, now)
            await tx.directories.release_runs(self.id)

        await self._store.write(work)

    async def leave(self) -> None:
        """Record that this node shuts down."""
        if self._store.is_shared:
            await self._store.write(lambda tx: tx.directories.delete_node(self._owner))

    async def beat(self, connection: SideConnection) -> None:
        """Renew the row of this node."""
        if self._store.is_shared:
            now = to_micros(self._clock.now())
            node = {"owner": self._owner, "directory_id": self.id, "key_fingerprint": self._fingerprint, "now": now}
            await connection.fetch("see_node", node)
            await connection.fetch("see_directory", {"id": self.id, "now": now})

    async def check(self, agent_id: str) -> None:
        """Raise if an agent's database and files are still in a data directory, and not in its home."""
        if agent_id in self._unmoved:
            raise NotMoved(agent_id, self._unmoved[agent_id])
        if not self._is_ours(agent_id):
            await self._store.read(lambda tx: self.check_here(tx, agent_id), is_single=True)

    async def check_here(self, tx: Tx, agent_id: str) -> None:
        """Raise if an agent's database and files are in another directory, as part of a transaction."""
        if not self._is_ours(agent_id):
            self._refuse_other(agent_id, await self.of_agent(tx, agent_id))

    async def note_unmoved(self, agent_id: str, problem: str) -> None:
        """Record that an agent's files are still in this directory, so that no node takes it for one without files."""
        self._unmoved[agent_id] = problem
        await self._store.write(lambda tx: tx.directories.bind(agent_id, self.id), is_repeatable=True)

    async def note_moved(self, agent_id: str) -> None:
        """Record that an agent's files were moved from this directory into its home."""
        await self._store.write(lambda tx: tx.directories.unbind(agent_id, self.id), is_repeatable=True)

    async def check_reachable(self, tx: Tx, agent_id: str) -> None:
        """Raise if no running node has the agent's directory, so that its runs would only wait."""
        if not self._is_ours(agent_id):
            directory = await self.of_agent(tx, agent_id)
            if directory is not None and directory.id != self.id and not directory.is_alive:
                raise MemoryElsewhere(agent_id, directory)

    async def of_agent(self, tx: Tx, agent_id: str) -> Directory | None:
        """Return the directory that an agent is bound to."""
        return await tx.directories.of_agent(agent_id, self.alive_since(self._clock.now()))

    def _is_ours(self, agent_id: str) -> bool:
        return not self._store.is_shared or agent_id in self._ours

    def _refuse_other(self, agent_id: str, directory: Directory | None) -> None:
        if directory is not None and directory.id != self.id:
            raise MemoryElsewhere(agent_id, directory)
        self._ours.add(agent_id)

    def alive_since(self, now: datetime) -> datetime:
        """Return the earliest time of a heartbeat that counts a node as running.

        Soon after a step of the clock every node counts, since older times cannot be compared.
        """
        is_settled = self._clock.seconds_since_step() >= self.lease.total_seconds()
        return now - self.lease if is_settled else _EVER

    async def _register(self, file: DirectoryFile) -> None:
        if file.key_fingerprint is not None and file.key_fingerprint != self._fingerprint:
            raise self._other_key()
        is_settled = file.key_fingerprint is not None or file.takes_any_key
        fits = is_settled or await asyncio.to_thread(agent_keys.fits, self._agents, self._device_key)
        place, now = f"{socket.gethostname()}:{self._data_dir.resolve()}", self._clock.now()

        async def work(tx: Tx) -> None:
            own = self._fingerprint if fits else None
            known = await tx.directories.save(self.id, place, own, now, overwrite=is_settled)
            if known not in (None, self._fingerprint):
                raise self._other_key()
            if await tx.directories.has_other_key(self.id, self._fingerprint, self.alive_since(now)):
                raise OtherDeviceKey(
                    f"A running node uses the same data directory {str(self._data_dir)!r} with another device key, so "
                    "neither could read what the other writes. Copy device.key from the config directory of one to "
                    f"that of the other. If that node is gone, try again in {self.lease.total_seconds():.0f} seconds."
                )

        await self._store.write(work)
        if not fits:
            log.warning("no agent's database opens with the device key", extra={"data_dir": str(self._data_dir)})
        elif file.key_fingerprint is None:
            await asyncio.to_thread(directory_file.save_key, self._data_dir, self._fingerprint)

    def _other_key(self) -> OtherDeviceKey:
        file = self._data_dir / directory_file.FILE_NAME
        return OtherDeviceKey(
            f"The device key of this node is not the one that the databases in {str(self._data_dir)!r} are encrypted "
            "with. Restore the right one with `wakeful key restore`, or copy device.key from the node that has it. "
            f'If it is lost for good, set "device_key" to null in {str(file)!r}: then the server starts, and the '
            "databases that were encrypted with it stay locked."
        )
