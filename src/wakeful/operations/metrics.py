"""Prometheus metrics: what this node has done since its start, and what waits in the store."""

import asyncio
import platform
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector, generate_latest
from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily
from prometheus_client.registry import Collector

from wakeful.core.clock import Clock
from wakeful.core.errors import Unavailable
from wakeful.core.identity import Identity, OwnersOnly
from wakeful.core.records import NodeIdentity, Outcome
from wakeful.core.types import Run, WaitingWork
from wakeful.operations.storage import Sizes
from wakeful.store.store import Store
from wakeful.timing.fire_rule import Verdict

_LATE = (0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 1.0, 5.0, 60.0, 600.0)
_LONG = (0.1, 0.5, 1.0, 5.0, 15.0, 60.0, 300.0, 1800.0)
_SHORT = (0.001, 0.01, 0.05, 0.25, 1.0, 5.0, 30.0)
_MAX_MODELS = 50
_MAX_TOOLS = 200
_MAX_AGENTS = 100
_MAX_REASONS = 100  # codes of the source, so there are fewer; a bound all the same


class Metrics:
    """Counters of one node. Every label has a bounded number of values; none is an id."""

    def __init__(self, store: Store, clock: Clock, node: NodeIdentity) -> None:
        self._store = store
        self._clock = clock
        self._registry = CollectorRegistry()
        self._samples = Samples(store, clock)
        self._model = BoundedNames(_MAX_MODELS)
        self._tool = BoundedNames(_MAX_TOOLS)
        self._reason = BoundedNames(_MAX_REASONS)
        ProcessCollector(registry=self._registry)
        self._add_wakes()
        self._add_runs()
        self._add_models_and_tools()
        self._add_environment()
        self._add_samples()
        store_kind = "postgresql" if store.is_shared else "sqlite"
        build = self._gauge("wakeful_build_info", "1, with the version.", "version", "python", "store")
        build.labels(node.version, platform.python_version(), store_kind).set(1)

        self._gauge("wakeful_node_info", "1, with the name of this node.", "node", "version").labels(
            node.name, node.version
        ).set(1)
        self._draining = self._gauge("wakeful_node_draining", "1 while this node claims no runs.")

    def note_verdicts(self, verdicts: Sequence[Verdict]) -> None:
        """Count what was decided about due wakes."""
        fired: dict[str, int] = {}
        for verdict in verdicts:
            wake = verdict.wake
            if verdict.fold is not None:
                self._folded.inc()
            for run in verdict.runs:
                if run.status == "queued":
                    fired[wake.kind] = fired.get(wake.kind, 0) + 1
                else:
                    self._skipped.labels(self._reason(run.reason)).inc(max(1, run.covers))
            if wake.held_by is not None and verdict.decisions:  # else it was counted when the hold began
                self._held.labels(self._reason(wake.held_by)).inc()
        for kind, count in fired.items():
            self._fired.labels(kind).inc(count)

    def note_shed(self, run: Run) -> None:
        """Count a low-priority run that found no free slot."""
        self._skipped.labels("no_slot").inc(max(1, run.covers))

    def note_finished(self, run: Run, outcome: Outcome) -> None:
        """Count a run that has just ended."""
        self._finished.add(run.trigger, outcome.status)
        if outcome.status == "failed":
            self._failed.labels(self._reason(outcome.reason)).inc()
        if run.started_at is None:
            return
        self._took.observe(max(0.0, (self._clock.now() - run.started_at).total_seconds()))
        if run.trigger == "wake" and run.attempt == 1:
            self._late.observe((run.started_at - run.nominal_at).total_seconds())

    def note_recovered(self, run: Run) -> None:
        """Count a run that this node took over from a process that died."""
        self._recovered.labels("resumed" if run.status == "queued" else run.status).inc()

    def note_lease_lost(self) -> None:
        self._leases_lost.inc()

    def note_model_call(
        self, model: str, seconds: float, input_tokens: int, output_tokens: int, cost_micros: int | None
    ) -> None:
        """Count an answer of a model, with what it used."""
        name = self._model(model)
        self._asked.labels(name).observe(seconds)
        self._tokens.labels(name, "input").inc(input_tokens)
        self._tokens.labels(name, "output").inc(output_tokens)
        if cost_micros is not None:
            self._cost.labels(name).inc(cost_micros / 1_000_000)

    def note_model_error(self, model: str, code: str) -> None:
        self._model_errors.labels(self._model(model), self._reason(code)).inc()

    def note_model_retry(self, model: str) -> None:
        self._model_retries.labels(self._model(model)).inc()

    def note_tool_call(self, tool: str, *, is_known: bool, is_success: bool) -> None:
        """Count a call; a model can make up names, which are not labels."""
        name = self._tool(tool) if is_known else "unknown"
        self._tool_calls.labels(name, "ok" if is_success else "failed").inc()

    def count_outgoing(self, kind: str, outcome: str) -> None:
        """Count a message over a channel or to a browser, one of a webhook, or a ping."""
        counter = self._delivered if kind in ("channel", "push") else self._pings
        counter.labels("wake" if kind == "ping" else kind, outcome).inc()

    def note_spans(self, outcome: str, count: int) -> None:
        """Count spans that were sent to a collector, or could not be. From any thread."""
        self._spans.labels(outcome).inc(count)

    def note_sizes(self, sizes: Sizes, store_bytes: int, free_bytes: int) -> None:
        """Show the sizes of tables and agents; beyond a number of agents, the smaller ones together."""
        self._store_bytes.set(store_bytes)
        self._free_bytes.set(free_bytes)
        self._table_bytes.clear()
        for table, size in sizes.tables.items():
            self._table_bytes.labels(table).set(size)
        self._agent_bytes.clear()
        for number, use in enumerate(sizes.agents):
            name = use.name if number < _MAX_AGENTS else OTHER
            for kind, size in (("database", use.databases), ("files", use.files), ("messages", use.message_bytes)):
                self._agent_bytes.labels(name, kind).inc(size)

    def note_backup(self, outcome: str) -> None:
        """Count a scheduled backup that was made, or failed."""
        self._backups.labels(outcome).inc()

    def note_database_wait(self, seconds: float) -> None:
        """Count a request to an agent's database that got a worker, after waiting for it."""
        self._database_wait.observe(seconds)

    def watch(self, name: str, description: str, read: Callable[[], float], **labels: str) -> None:
        """Show a figure of this process, read at each scrape."""
        if name not in self._watched:
            self._watched[name] = self._gauge(name, description, *labels)
        gauge = self._watched[name]
        (gauge.labels(**labels) if labels else gauge).set_function(read)

    async def text(self, caller: Identity, *, is_ready: bool, is_draining: bool) -> bytes:
        """Return all metrics in Prometheus' text format. Only for owners, because they cover everyone's runs."""
        if caller.user.role != "owner":  # any scope is enough, so that a collector needs no powerful token
            raise OwnersOnly
        await self._samples.refresh()
        self._ready.set(is_ready)
        self._draining.set(is_draining)
        self._available.set(self._store.health.problem is None)
        self._show_samples()
        return generate_latest(self._registry)

    async def aclose(self) -> None:
        await self._samples.aclose()

    def _show_samples(self) -> None:
        found, now = self._samples.last, self._clock.now().timestamp()
        if found is None:
            return
        self._sampled_at.set(self._samples.read_at)
        self._unfinished.labels("queued").set(found.queued_runs)
        self._unfinished.labels("running").set(found.running_runs)
        self._pending.set(found.pending_wakes)
        self._approvals.set(found.approvals)
        next_at = 0.0 if found.next_wake_at is None else found.next_wake_at.timestamp()
        self._next_wake.set(next_at)
        self._overdue.set(max(0.0, now - next_at) if next_at else 0.0)

    def _add_wakes(self) -> None:
        self._fired = self._counter("wakeful_wakes_fired", "Runs that due wakes have queued.", "kind")
        self._held = self._counter("wakeful_wakes_held", "Due wakes that were held or deferred.", "reason")
        self._skipped = self._counter("wakeful_wakes_skipped", "Planned times that did not run.", "reason")
        self._folded = self._counter("wakeful_wakes_joined", "Due wakes that joined a run which still waited.")
        self._late = PlainHistogram(
            "wakeful_wake_lateness_seconds",
            "From the planned instant of a wake to the start of its run on this node, deferral and queueing included.",
            _LATE,
            self._registry,
        )

    def _add_runs(self) -> None:
        self._finished = PlainCounter(
            "wakeful_runs_finished", "Runs that ended on this node.", ("trigger", "status"), self._registry
        )
        self._failed = self._counter("wakeful_runs_failed", "Runs that failed on this node, by error code.", "reason")
        self._took = PlainHistogram("wakeful_run_seconds", "From the start of a run to its end.", _LONG, self._registry)
        self._recovered = self._counter(
            "wakeful_runs_recovered", "Runs that this node took over after a crash or a lost lease.", "outcome"
        )
        self._leases_lost = self._counter("wakeful_leases_lost", "Runs that this node lost while it executed them.")

    def _add_models_and_tools(self) -> None:
        self._tokens = self._counter("wakeful_model_tokens", "Tokens of model calls.", "model", "direction")
        self._cost = self._counter("wakeful_model_cost_dollars", "Cost of calls with a known price.", "model")
        self._asked = self._histogram(
            "wakeful_model_call_seconds", "From a request to the end of its answer.", _LONG, "model"
        )
        self._model_errors = self._counter(
            "wakeful_model_errors", "Model calls without an answer, retried ones included.", "model", "code"
        )
        self._model_retries = self._counter("wakeful_model_retries", "Model calls that were repeated.", "model")
        self._tool_calls = self._counter("wakeful_tool_calls", "Calls of tools.", "tool", "outcome")

    def _add_environment(self) -> None:
        self._ready = self._gauge("wakeful_ready", "1 while this node fires wakes, as /readyz says.")
        self._backups = self._counter("wakeful_backups", "Scheduled backups of this node.", "outcome")
        self._available = self._gauge("wakeful_store_available", "1 while the store answers.")
        self._database_wait = self._histogram(
            "wakeful_database_wait_seconds", "Wait of requests to agents' databases for a worker.", _SHORT
        )
        self._delivered = self._counter(
            "wakeful_messages_sent", "Messages over channels and to browsers.", "kind", "outcome"
        )
        self._pings = self._counter(
            "wakeful_pings", "Pings of the heartbeat address and of wakes' addresses.", "kind", "outcome"
        )
        self._spans = self._counter("wakeful_spans_sent", "Spans of traces for the collector.", "outcome")
        self._store_bytes = self._gauge("wakeful_store_bytes", "Size of the store on disk.")
        self._free_bytes = self._gauge("wakeful_disk_free_bytes", "Free space on the disk of the data directory.")
        self._table_bytes = self._gauge("wakeful_table_bytes", "Size of a table with its indexes.", "table")
        self._agent_bytes = self._gauge("wakeful_agent_bytes", "Size of what an agent has.", "agent", "kind")
        self._watched: dict[str, Gauge] = {}

    def _add_samples(self) -> None:
        self._unfinished = self._gauge("wakeful_runs_unfinished", "Runs in the store that have not ended.", "status")
        self._pending = self._gauge("wakeful_wakes_pending", "Wakes in the store that are still to fire.")
        self._approvals = self._gauge("wakeful_approvals_waiting", "Tool calls that wait for a person.")
        self._next_wake = self._gauge(
            "wakeful_next_wake_timestamp_seconds", "When the next wake is due, in seconds since 1970; 0: none is."
        )
        self._overdue = self._gauge("wakeful_overdue_seconds", "Since when the oldest due wake waits for a decision.")
        self._sampled_at = self._gauge(
            "wakeful_sampled_timestamp_seconds", "When the figures of the store were read, in seconds since 1970."
        )

    def _counter(self, name: str, description: str, *labels: str) -> Counter:
        return Counter(name, description, labels, registry=self._registry)

    def _gauge(self, name: str, description: str, *labels: str) -> Gauge:
        return Gauge(name, description, labels, registry=self._registry)

    def _histogram(self, name: str, description: str, buckets: Sequence[float], *labels: str) -> Histogram:
        return Histogram(name, description, labels, buckets=buckets, registry=self._registry)


# ── Label values: names that users and models choose must not make series without end ────────────────────────────────

OTHER = "other"


class BoundedNames:
    """Passes the first names on, and calls all later ones `other`."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._names: set[str] = set()

    def __call__(self, name: str | None) -> str:
        if not name:
            return "none"
        if name in self._names:
            return name
        if len(self._names) >= self._most:
            return OTHER
        self._names.add(name)
        return name


# ── A counter and a histogram that cost a fraction of the library's, for every run ───────────────────────────────────
#
# They have no lock, so they are only for the thread of the event loop.


class PlainCounter(Collector):
    """Counts by the values of its labels."""

    def __init__(self, name: str, description: str, labels: Sequence[str], registry: CollectorRegistry) -> None:
        self._name = name
        self._description = description
        self._labels = tuple(labels)
        self._counts: dict[tuple[str, ...], int] = {}
        registry.register(self)

    def add(self, *values: str) -> None:
        """Count one more with these values of the labels."""
        self._counts[values] = self._counts.get(values, 0) + 1

    def collect(self) -> Iterator[CounterMetricFamily]:
        family = CounterMetricFamily(self._name, self._description, labels=self._labels)
        for values, count in self._counts.items():
            family.add_metric(values, count)
        yield family


class PlainHistogram(Collector):
    """Counts values by bucket."""

    def __init__(self, name: str, description: str, buckets: Sequence[float], registry: CollectorRegistry) -> None:
        self._name = name
        self._description = description
        self._bounds = tuple(buckets)
        self._counts = [0] * (len(buckets) + 1)  # the last: beyond all bounds
        self._sum = 0.0
        registry.register(self)

    def observe(self, value: float) -> None:
        self._counts[bisect_left(self._bounds, value)] += 1  # a bound belongs to its bucket
        self._sum += value

    def collect(self) -> Iterator[HistogramMetricFamily]:
        buckets: list[tuple[str, float]] = []
        count = 0
        for bound, found in zip((*map(str, self._bounds), "+Inf"), self._counts, strict=True):
            count += found
            buckets.append((bound, count))
        yield HistogramMetricFamily(self._name, self._description, buckets=buckets, sum_value=self._sum)


# ── Figures from the store, which a scrape never waits for ───────────────────────────────────────────────────────────

_WAIT = 0.02  # seconds that a scrape waits for fresh figures; with the rest of it, 50 ms at most


class Samples:
    """The last figures of the store. One read at a time, whatever the number of scrapes."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._reading: asyncio.Task[None] | None = None
        self.last: WaitingWork | None = None  # None: nothing was read yet
        self.read_at = 0.0  # seconds since 1970

    async def refresh(self) -> None:
        """Read the figures, or leave the last ones if the store takes longer than a moment."""
        if self._reading is None or self._reading.done():
            self._reading = asyncio.create_task(self._read())
        await asyncio.wait([self._reading], timeout=_WAIT)

    async def aclose(self) -> None:
        if self._reading is not None:
            self._reading.cancel()
            await asyncio.gather(self._reading, return_exceptions=True)

    async def _read(self) -> None:
        try:
            self.last = await self._store.read(lambda tx: tx.runs.waiting_work(), is_single=True)
        except Unavailable:  # the store logs it; `wakeful_store_available` says it
            return
        self.read_at = self._clock.now().timestamp()
