"""The store: transactions over our tables, whichever database holds them."""

from collections.abc import Callable, Coroutine, Sequence
from datetime import datetime
from typing import Any, TypeVar

from wakeful.domain.errors import WakefulError
from wakeful.domain.types import Wake
from wakeful.store.agents.agents import AgentRows
from wakeful.store.agents.directories import DirectoryRows
from wakeful.store.agents.instruction_files import InstructionFileRows
from wakeful.store.agents.mcp_servers import UnconfinedMcpServers
from wakeful.store.drivers.database import Database, Listener, Params, Row, SideConnection, Statements
from wakeful.store.drivers.sequence import Loss
from wakeful.store.drivers.sqlite import SqliteDatabase
from wakeful.store.errors import StoreUnavailable
from wakeful.store.health import StoreHealth
from wakeful.store.inbox.channels import ChannelRows
from wakeful.store.inbox.notices import Notices
from wakeful.store.migrate import Migration, load_migrations, migrate
from wakeful.store.people.accounts import AccountRows
from wakeful.store.rows import ADDED_WAKE, to_micros
from wakeful.store.runs.approvals import ApprovalRows
from wakeful.store.runs.runs import RunRows
from wakeful.store.runs.usage import UsageRows
from wakeful.store.sessions.presence import Presence
from wakeful.store.sessions.sessions import SessionRows
from wakeful.store.wakes.wakes import WakeRows, hints, news_of

T = TypeVar("T")


class Tx:
    """One transaction, seen by noun."""

    __slots__ = (
        "accounts",
        "agents",
        "approvals",
        "channels",
        "directories",
        "instruction_files",
        "notices",
        "presence",
        "runs",
        "sessions",
        "tell",
        "unconfined_mcp_servers",
        "usage",
        "wakes",
    )

    def __init__(self, statements: Statements) -> None:
        self.tell = statements.tell
        self.accounts = AccountRows(statements)
        self.agents = AgentRows(statements)
        self.approvals = ApprovalRows(statements)
        self.channels = ChannelRows(statements)
        self.directories = DirectoryRows(statements)
        self.instruction_files = InstructionFileRows(statements)
        self.notices = Notices(statements)
        self.presence = Presence(statements)
        self.runs = RunRows(statements)
        self.sessions = SessionRows(statements)
        self.unconfined_mcp_servers = UnconfinedMcpServers(statements)
        self.usage = UsageRows(statements)
        self.wakes = WakeRows(statements)


class Store:
    """Where everything is kept that must survive."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self.health = StoreHealth()
        self._listeners: list[Listener] = []
        self.loss: Loss | None = None  # known once it is open

    @property
    def is_shared(self) -> bool:
        """Tell whether other processes may work on the same store."""
        return self._database.dialect == "postgres"

    async def open(self, now: datetime, check_empty: Callable[[], None] = lambda: None) -> list[Migration]:
        """Open the database, bring its schema up to date, and return what that took.

        `check_empty` is called before anything is written to a store without agents, and may raise.
        """
        await self._database.open(check_empty)
        try:
            if not await self._database.has_agents():
                await self._check_empty(check_empty)
            applied = await migrate(self._database, load_migrations(self._database.dialect), to_micros(now))
            if isinstance(self._database, SqliteDatabase):
                self.loss = await self._database.find_loss()
            return applied
        except BaseException:
            await self._database.close()
            raise

    async def _check_empty(self, check_empty: Callable[[], None]) -> None:
        try:
            check_empty()
        except WakefulError:
            if isinstance(self._database, SqliteDatabase):
                await self._database.leave_journal()
            raise

    async def close(self) -> None:
        await self._database.close()

    async def write(
        self,
        work: Callable[[Tx], Coroutine[Any, Any, T]],
        *,
        is_synced: bool = True,
        is_single: bool = False,
        is_repeatable: bool = False,
        is_long: bool = False,
    ) -> T:
        """Run work in one transaction and return when it is durable.

        Work may be run again after a lost race or connection, so it does nothing but rules and statements. What would
        only be done again if the power failed need not be synced. What is a single statement in PostgreSQL is quicker
        if it says so. What changes nothing the second time says that it is repeatable; otherwise a connection that is
        lost with the commit under way ends in StoreUnavailable, in doubt. Long work has statements whose time depends
        on how much there is: no answer is missed for a day.
        """
        with self.health.noted(is_write=True):
            return await self._database.write(
                lambda statements: work(Tx(statements)),
                is_synced=is_synced,
                is_single=is_single,
                is_repeatable=is_repeatable,
                is_long=is_long,
            )

    async def add_wakes(self, wakes: Sequence[Wake]) -> set[str]:
        """Book wakes, durably and by themselves, and return the ids of those that found room."""
        rows = [ADDED_WAKE(wake) for wake in wakes]

        async def work(statements: Statements) -> set[str]:
            for text in news_of(wakes):
                statements.tell(text)
            return await statements.write_each("add_wakes", rows)

        with self.health.noted(is_write=True):
            try:
                added = await self._database.write(work, is_single=True)
            except StoreUnavailable as error:
                if not error.is_in_doubt:
                    raise
                # The ids are new, so one that is there now was added by us. The second try also waits for the first,
                # should the server still be at it.
                added = await self._database.write(work, is_single=True, is_repeatable=True)
                added |= {wake.id for wake in wakes if await self.read(lambda tx, wake=wake: tx.wakes.find(wake.id))}
        # Told on this node alone: to tell the others would cost as much as the booking, and it is only a hint.
        for hint in hints("wake", [wake.id for wake in wakes if wake.id in added]):
            for listener in self._listeners:
                listener(hint)
        return added

    async def read(self, work: Callable[[Tx], Coroutine[Any, Any, T]], *, is_single: bool = False) -> T:
        """Run work that only reads. What is a single statement is quicker if it says so."""
        with self.health.noted(is_write=False):
            return await self._database.read(lambda statements: work(Tx(statements)), is_single=is_single)

    async def side_connection(self) -> SideConnection:
        with self.health.noted(is_write=False):
            return _Noted(await self._database.side_connection(), self.health)

    def listen(self, listener: Listener) -> None:
        self._listeners.append(listener)
        self._database.listen(listener)

    async def size(self) -> int:
        """Return how many bytes everything that is kept here takes on disk."""
        return await self._database.size()

    async def checkpoint(self) -> None:
        """Move what stands in a journal beside the store into its file."""
        await self._database.checkpoint()

    async def read_clock(self) -> int | None:
        with self.health.noted(is_write=False):
            return await self._database.read_clock()


class _Noted:
    """A side connection whose failures count as the store's."""

    def __init__(self, connection: SideConnection, health: StoreHealth) -> None:
        self._connection = connection
        self._health = health

    async def fetch(self, name: str, params: Params) -> Sequence[Row]:
        with self._health.noted(is_write=False):
            return await self._connection.fetch(name, params)

    async def close(self) -> None:
        await self._connection.close()
