"""Prometheus metrics: runs that this node has finished, and what waits in the store."""

from functools import cache

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector, generate_latest

from wakeful.clock import Clock
from wakeful.domain.nodes import NodeIdentity
from wakeful.domain.people.accounts import Identity, OwnersOnly
from wakeful.domain.runs.runs import Outcome
from wakeful.domain.types import Run
from wakeful.store.store import Store, Tx

_LATE = (0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 1.0, 5.0, 60.0, 600.0)
_LONG = (0.1, 0.5, 1.0, 5.0, 15.0, 60.0, 300.0, 1800.0)


class Metrics:
    def __init__(self, store: Store, clock: Clock, node: NodeIdentity) -> None:
        self._store = store
        self._clock = clock
        self._registry = CollectorRegistry()
        ProcessCollector(registry=self._registry)
        self._finished = Counter(
            "wakeful_runs_finished", "Runs that ended on this node.", ("trigger", "status"), registry=self._registry
        )
        self._finished_as = cache(self._finished.labels)  # looking up a label costs more than counting
        self._late = Histogram(
            "wakeful_wake_lateness_seconds",
            "From the planned instant of a wake to the start of its run on this node, deferral and queueing included.",
            buckets=_LATE,
            registry=self._registry,
        )
        self._took = Histogram(
            "wakeful_run_seconds", "From the start of a run to its end.", buckets=_LONG, registry=self._registry
        )
        self._unfinished = Gauge(
            "wakeful_runs_unfinished", "Runs in the store that have not ended.", ("status",), registry=self._registry
        )
        self._pending = Gauge(
            "wakeful_wakes_pending", "Wakes in the store that are still to fire.", registry=self._registry
        )
        info = Gauge("wakeful_node_info", "Always 1.", ("node", "version"), registry=self._registry)
        info.labels(node.name, node.version).set(1)
        self._draining = Gauge("wakeful_node_draining", "1 while this node claims no runs.", registry=self._registry)
        self._ready = Gauge("wakeful_ready", "1 while this node fires wakes, as /readyz says.", registry=self._registry)

    def note_finished(self, run: Run, outcome: Outcome) -> None:
        """Count a run that has just ended."""
        self._finished_as(run.trigger, outcome.status).inc()
        if run.started_at is None:
            return
        self._took.observe(max(0.0, (self._clock.now() - run.started_at).total_seconds()))
        if run.trigger == "wake" and run.attempt == 1:
            self._late.observe((run.started_at - run.nominal_at).total_seconds())

    async def text(self, caller: Identity, *, is_ready: bool, is_draining: bool) -> bytes:
        """Return all metrics in Prometheus' text format. Only for owners, because they cover everyone's runs."""
        if caller.user.role != "owner":  # any scope is enough, so that a collector needs no powerful token
            raise OwnersOnly

        async def work(tx: Tx) -> tuple[dict[str, int], int]:
            return await tx.runs.count_unfinished(), await tx.wakes.count_pending()

        unfinished, pending = await self._store.read(work)
        for status, count in unfinished.items():
            self._unfinished.labels(status).set(count)
        self._pending.set(pending)
        self._ready.set(is_ready)
        self._draining.set(is_draining)
        return generate_latest(self._registry)
