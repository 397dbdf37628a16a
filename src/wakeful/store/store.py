"""The store: transactions over our tables, in either database."""

from collections.abc import Callable, Coroutine, Sequence
from datetime import datetime, timedelta
from typing import Any, TypeVar

from wakeful.core.errors import StoreUnavailable, WakefulError
from wakeful.core.events import N, News
from wakeful.core.types import Wake
from wakeful.store.agents import AgentRows, InstructionFileRows, McpTools, UnconfinedMcpServers
from wakeful.store.completions import ClientSessionRows
from wakeful.store.drivers.database import Database, Params, Row, SideConnection, Statements
from wakeful.store.drivers.sqlite import FreePages, SqliteDatabase
from wakeful.store.drivers.sqlite_thread import Loss
from wakeful.store.errors import StoreHealth
from wakeful.store.homes import DirectoryRows, HomeRows
from wakeful.store.hooks import HookRows
from wakeful.store.migrate import LEASE, CopyFirst, Migration, load_migrations, migrate
from wakeful.store.models import ModelRows
from wakeful.store.nodes import BackupRows, MoveRows, NodeRows, PingRows, StorageRows
from wakeful.store.notices import ChannelRows, Notices, PushRows
from wakeful.store.outgoing import OutgoingRows
from wakeful.store.people import AccountRows
from wakeful.store.rows import to_micros
from wakeful.store.runs import ApprovalRows, RunRows, TokenUses, UsageRows
from wakeful.store.sessions import Presence, SearchRows, SessionFrames, SessionRows
from wakeful.store.wakes import BookingKeys, WakeRows
from wakeful.store.webhooks import WebhookRows

T = TypeVar("T")


class Tx:
    """One transaction, seen by noun."""

    def __init__(self, statements: Statements) -> None:
        self._statements = statements
        self.frames = SessionFrames(statements)
        self.say = self.frames.say
        self.accounts = AccountRows(statements)
        self.agents = AgentRows(statements)
        self.approvals = ApprovalRows(statements)
        self.backups = BackupRows(statements)
        self.booking_keys = BookingKeys(statements)
        self.channels = ChannelRows(statements)
        self.client_sessions = ClientSessionRows(statements)
        self.directories = DirectoryRows(statements)
        self.homes = HomeRows(statements)
        self.hooks = HookRows(statements)
        self.instruction_files = InstructionFileRows(statements)
        self.mcp_tools = McpTools(statements)
        self.models = ModelRows(statements)
        self.moves = MoveRows(statements)
        self.nodes = NodeRows(statements)
        self.outgoing = OutgoingRows(statements)
        self.webhooks = WebhookRows(statements, self.outgoing)
        self.notices = Notices(statements, self.webhooks, self.outgoing)
        self.pings = PingRows(statements)
        self.presence = Presence(statements)
        self.push = PushRows(statements)
        self.runs = RunRows(statements, self.webhooks, self.outgoing)
        self.search = SearchRows(statements)
        self.sessions = SessionRows(statements, self.search)
        self.storage = StorageRows(statements)
        self.token_uses = TokenUses(statements)
        self.unconfined_mcp_servers = UnconfinedMcpServers(statements)
        self.usage = UsageRows(statements)
        self.wakes = WakeRows(statements, self.frames)

    @classmethod
    async def carry_out(cls, work: "Callable[[Tx], Coroutine[Any, Any, T]]", statements: Statements) -> T:
        """Do work as one transaction: what it said is saved with the rest of it."""
        tx = cls(statements)
        result = await work(tx)
        await tx.frames.save()
        return result


class Store:
    """Transactions, and the news that they leave."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.health = StoreHealth()
        self._handlers: dict[type[Any], list[Callable[[Any], None]]] = {}
        database.listen(self._deliver)
        self.loss: Loss | None = None  # known once it is open

    @property
    def is_shared(self) -> bool:
        """Whether other processes may work on the same store."""
        return self.database.dialect == "postgres"

    async def open(
        self,
        now: datetime,
        check_empty: Callable[[], None] = lambda: None,
        copy_first: CopyFirst | None = None,
        lease: timedelta = LEASE,
    ) -> list[Migration]:
        """Open the database, bring its schema up to date, and return what that took.

        `check_empty` is called before anything is written to a store without agents, and may raise; for `copy_first`
        and `lease` see `migrate`.
        """
        await self.database.open(check_empty)
        try:
            if not await self.database.has_agents():
                await self._check_empty(check_empty)
            migrations = load_migrations(self.database.dialect)
            applied = await migrate(self.database, migrations, to_micros(now), copy_first, lease)
            if isinstance(self.database, SqliteDatabase):
                self.loss = await self.database.find_loss()
            return applied
        except BaseException:
            await self.database.close()
            raise

    async def _check_empty(self, check_empty: Callable[[], None]) -> None:
        try:
            check_empty()
        except WakefulError:
            if isinstance(self.database, SqliteDatabase):
                await self.database.leave_journal()
            raise

    async def close(self) -> None:
        await self.database.close()

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

        Work may be run again after a lost race or connection, so it does nothing but rules and statements. The news
        that its writes leave and the frames that it says are delivered after the commit, to subscribers on every node.

        Work that would only be done again if the power failed need not be synced. A single statement is quicker in
        PostgreSQL with `is_single`. Work that changes nothing the second time is repeatable; otherwise a connection
        that is lost during the commit ends in StoreUnavailable, in doubt. Long work has statements whose time depends
        on the amount of data: their timeout is a day.
        """
        with self.health.noted(is_write=True):
            return await self.database.write(
                lambda statements: Tx.carry_out(work, statements),
                is_synced=is_synced,
                is_single=is_single,
                is_repeatable=is_repeatable,
                is_long=is_long,
            )

    async def add_wakes(self, wakes: Sequence[Wake]) -> set[str]:
        """Book wakes, durably and by themselves, and return the ids of those that found room."""
        # One that lands in a session is said there, in the same transaction; others are a single statement.
        is_single = all(wake.kind != "recall" for wake in wakes)

        async def work(tx: Tx) -> set[str]:
            return await tx.wakes.add(wakes)

        try:
            return await self.write(work, is_single=is_single)
        except StoreUnavailable as error:
            if not error.is_in_doubt:
                raise
        # The ids are new, so one that is there now was added by us. The second try also waits for the first, should the
        # server still be at it.
        added = await self.write(work, is_single=is_single, is_repeatable=True)
        return added | {wake.id for wake in await self.read(lambda tx: tx.wakes.some([wake.id for wake in wakes]))}

    async def read(
        self, work: Callable[[Tx], Coroutine[Any, Any, T]], *, is_single: bool = False, is_long: bool = False
    ) -> T:
        """Run work that only reads. A single statement is quicker with `is_single`; long work delays no others."""
        with self.health.noted(is_write=False):
            return await self.database.read(
                lambda statements: work(Tx(statements)), is_single=is_single, is_long=is_long
            )

    async def side_connection(self) -> SideConnection:
        with self.health.noted(is_write=False):
            return _Noted(await self.database.side_connection(), self.health)

    def on(self, kind: type[N], handler: Callable[[N], None]) -> None:
        """Call a handler with every piece of news of one type, from this node and from others, after the commit."""
        handlers: list[Callable[[Any], None]] = self._handlers.setdefault(kind, [])
        handlers.append(handler)

    def deliver(self, news: News) -> None:
        """Hand news that is in no table of the store to the subscribers on this node."""
        self._deliver([news])

    def _deliver(self, news: Sequence[News]) -> None:
        for each in news:
            for handler in self._handlers.get(type(each), ()):
                handler(each)

    async def size(self) -> int:
        """Return how many bytes the store takes on disk."""
        return await self.database.size()

    async def checkpoint(self) -> None:
        """Move the journal beside the store into its file."""
        await self.database.checkpoint()

    async def free_pages(self) -> FreePages | None:
        """Return how much of the embedded store's file is not used; None: PostgreSQL reuses and frees it by itself."""
        return await self.database.free_pages() if isinstance(self.database, SqliteDatabase) else None

    async def cut_off(self, pages: int) -> None:
        """Give free pages of the embedded store's file back to the disk."""
        if isinstance(self.database, SqliteDatabase):
            await self.database.cut_off(pages)

    async def read_clock(self) -> int | None:
        with self.health.noted(is_write=False):
            return await self.database.read_clock()


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
