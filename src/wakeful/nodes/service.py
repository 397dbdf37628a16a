"""The nodes that share a store: listing and draining them."""

import logging
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path

from wakeful.core.clock import Clock
from wakeful.core.errors import Unavailable
from wakeful.core.identity import Identity, OwnersOnly
from wakeful.core.records import Node, NodeIdentity, NoSuchNode, OnlyNode
from wakeful.homes import directories
from wakeful.homes.directories import Directories, OtherDeviceKey
from wakeful.outgoing.push import Push
from wakeful.store.base import Job
from wakeful.store.store import Store, Tx

log = logging.getLogger(__name__)


class Nodes:
    """This node among the others."""

    def __init__(self, store: Store, clock: Clock, identity: NodeIdentity, directories: Directories) -> None:
        self._store = store
        self._clock = clock
        self.identity = identity
        self._directories = directories
        self._started_at: datetime | None = None
        self.is_draining = False
        self._token_id: str | None = None
        self._is_only_token = False

    async def arrive(self) -> None:
        """Record what others may know of this node; its heartbeat is there already."""
        self._started_at = self._clock.now()
        if self._store.is_shared:
            await self._store.write(self._describe, is_repeatable=True)

    async def leave(self) -> None:
        """Record that this node shuts down, once; a store that is unavailable is not asked again."""
        if self._started_at is None:
            return
        self._started_at = None
        try:
            await self._directories.leave()
        except Unavailable as error:
            log.warning(
                "store away, so this node counts as running until its lease runs out", extra={"problem": error.message}
            )

    async def keep_token(self, tx: Tx, token_id: str, *, is_only: bool) -> None:
        """Record this node's owner token; if it is the only one, delete those that no other running node has."""
        self._token_id, self._is_only_token = token_id, is_only
        await tx.nodes.set_token(self.identity.owner, token_id)
        await self._drop_other_tokens(tx)

    def jobs(self) -> Iterator[Job]:
        if self._store.is_shared:
            yield Job(name="node-tokens", every=timedelta(minutes=1), run=self.tidy)

    async def tidy(self) -> None:
        """Delete owner tokens of nodes that have stopped since, if this node has one in its settings."""
        if self._store.is_shared and self._is_only_token:
            await self._store.write(self._drop_other_tokens)

    async def _drop_other_tokens(self, tx: Tx) -> None:
        if self._is_only_token and self._token_id is not None:
            since = self._directories.alive_since(self._clock.now())
            await tx.accounts.drop_other_owner_tokens(self._token_id, self.identity.owner, since)

    async def look(self) -> bool:
        """Return whether this node is to drain, as the store says. Describes it again if another took it for dead."""
        if not self._store.is_shared:
            return False
        found = await self._store.read(lambda tx: tx.nodes.find_draining(self.identity.owner), is_single=True)
        if found is None:
            await self._store.write(self._describe, is_repeatable=True)
        elif found != self.is_draining:
            self.is_draining = found
            log.info("node drains" if found else "node claims runs again", extra={"node": self.identity.name})
        return self.is_draining

    async def list(self, caller: Identity) -> list[Node]:
        """Return all nodes, also those without a heartbeat. For owners."""
        _check_owner(caller)
        if not self._store.is_shared:
            return [await self._store.read(self._describe_only)]
        since = self._directories.alive_since(self._clock.now())
        return await self._store.read(lambda tx: tx.nodes.all(since))

    async def drain(self, node_id: str, caller: Identity) -> Node:
        """Have a node claim nothing, and hand back its runs; other nodes continue them."""
        return await self._set_draining(node_id, caller, is_draining=True)

    async def undrain(self, node_id: str, caller: Identity) -> Node:
        """Have a node claim runs again."""
        return await self._set_draining(node_id, caller, is_draining=False)

    async def _set_draining(self, node_id: str, caller: Identity, *, is_draining: bool) -> Node:
        _check_owner(caller)
        if not self._store.is_shared:
            raise OnlyNode
        since = self._directories.alive_since(self._clock.now())

        async def work(tx: Tx) -> Node:
            await tx.nodes.set_draining(node_id, is_draining=is_draining)
            found = [node for node in await tx.nodes.all(since) if node.id == node_id]
            if not found:
                raise NoSuchNode(node_id)
            return found[0]

        return await self._store.write(work)

    async def _describe(self, tx: Tx) -> None:
        started_at = self._started_at or self._clock.now()
        await tx.nodes.describe(self.identity, started_at, is_draining=self.is_draining, token_id=self._token_id)

    async def _describe_only(self, tx: Tx) -> Node:
        now = self._clock.now()
        return Node(
            id=self.identity.owner,
            name=self.identity.name,
            version=self.identity.version,
            place=self.identity.place,
            started_at=self._started_at or now,
            seen_at=now,
            is_alive=True,
            is_draining=False,
            mcp_servers=self.identity.mcp_servers,
            runs=len(await tx.runs.held_by(self.identity.owner)),
            agents=await tx.nodes.count_agents(),
        )


def _check_owner(caller: Identity) -> None:
    if caller.user.role != "owner":
        raise OwnersOnly


# Checks that this node has the device key of the other nodes on a store.
#
# The key that signs push messages is the known ciphertext: the first start encrypts it with the device key.


async def check_shared_key(store: Store, push: Push, data_dir: Path, config_dir: Path) -> None:
    """Raise if the keys in a shared store are encrypted with another device key.

    Otherwise this node could not read the keys of models, and its runs would fail while those of other nodes do not.
    """
    problem = (await push.offer()).problem
    if problem is None:
        return
    if not store.is_shared:  # the server has other things to do
        log.warning("push messages cannot be signed", extra={"problem": problem})
        return
    directory = directories.find_directory(data_dir)
    if directory is not None and directory.takes_any_key:  # someone has declared the old key lost
        log.warning("the device key was replaced: browsers have to turn push messages on again")
        await push.replace_key()
        return
    file = data_dir / directories.ID_FILE
    raise OtherDeviceKey(
        f"This node has another device key than the nodes that have used this PostgreSQL database: the one in "
        f"{str(config_dir)!r} does not decrypt the keys that are stored there. Nothing was changed. Copy device.key "
        "from the config directory of a node that works, or restore it with `wakeful key restore`. If that key is lost "
        f'for good, set "device_key" to null in {str(file)!r}: then the server starts, and what was encrypted with it '
        "stays locked."
    )
