"""Traces in memory: the attempts of an agent that books itself are one chain, over days, crashes and nodes."""

import pytest
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from harness import DAY, HOUR, MINUTE, NOON, SECOND, Harness, doing, lay_out
from wakeful.app.building import Traces
from wakeful.core.events import StepSaved
from wakeful.core.records import NodeIdentity
from wakeful.core.types import RunUsage
from wakeful.telemetry.otel import OtelSpans
from wakeful.telemetry.tracing import Tracing

pytestmark = pytest.mark.both_stores

LEASE = 30 * SECOND
IDENTITY = NodeIdentity(owner="o", name="n", version="0", place="here", mcp_servers=())


class Recorded:
    """The spans that have ended."""

    def __init__(self) -> None:
        self.exporter = InMemorySpanExporter()
        self.spans = OtelSpans(self.exporter, IDENTITY)

    def __call__(self):
        self.spans.flush()
        return sorted(self.exporter.get_finished_spans(), key=lambda span: span.start_time)


@pytest.fixture
def recorded():
    recorded = Recorded()
    yield recorded
    recorded.spans.stop()


@pytest.fixture
async def harness(backend_settings, recorded):
    await lay_out(backend_settings)
    async with Harness(backend_settings, traces=Traces(tracing=Tracing(recorded.spans.begin))).opened() as harness:
        yield harness


def place_of(span):
    context = span.get_span_context()
    return context.trace_id, context.span_id


def linked(span):
    return [(link.context.trace_id, link.context.span_id) for link in span.links]


async def test_a_chain_of_bookings_over_days_and_a_restart(harness, recorded):
    async def book_next(run):
        await harness.book(kind="next_run", at=harness.clock.now() + DAY, scheduled_by="agent", booked_by_run=run.id)

    harness.executor.default = doing(book_next)
    await harness.book(kind="next_run", at=NOON)
    for day in range(3):
        await harness.turn_at(NOON + day * DAY)
    first, second, third = recorded()
    assert len({span.get_span_context().trace_id for span in (first, second, third)}) == 3
    assert (linked(first), linked(second), linked(third)) == ([], [place_of(first)], [place_of(second)])
    assert all(span.parent is None for span in (first, second, third))


async def test_an_attempt_after_a_crash_links_to_the_one_before(harness, recorded):
    async def book(run):
        return await harness.book(at=harness.clock.now() + HOUR, scheduled_by="agent", booked_by_run=run.id)

    harness.executor.default = doing(book)
    await harness.book(at=NOON)
    await harness.turn_at(NOON)
    gate = harness.executor.default = harness.gate()
    await harness.turn_at(NOON + HOUR)
    assert gate.is_holding == 1
    await harness.crash()
    harness.forget_gates()
    harness.executor.default = None
    await harness.turn_at(NOON + HOUR + LEASE)
    first, lost, again = recorded()
    assert linked(lost) == [place_of(first)]
    assert linked(again) == [place_of(lost)]
    assert (lost.attributes["wakeful.run.status"], again.attributes["wakeful.run.status"]) == ("lost", "success")
    assert (lost.attributes["wakeful.run.attempt"], again.attributes["wakeful.run.attempt"]) == (1, 2)


async def test_a_node_without_tracing_leaves_the_chain_whole(harness, recorded):
    """A run that another node starts, which sends no traces, keeps the link for the node after it."""
    wake = await harness.book(at=NOON)
    harness.executor.default = harness.gate()
    await harness.turn_at(NOON)
    await harness.crash()
    harness.forget_gates()
    tracing, harness.node.engine.runner.tracing = harness.node.engine.runner.tracing, Tracing()
    harness.executor.default = harness.gate()
    await harness.turn_at(NOON + LEASE)
    await harness.crash()
    harness.forget_gates()
    harness.node.engine.runner.tracing, harness.executor.default = tracing, None
    await harness.turn_at(NOON + 2 * MINUTE)
    first, third = recorded()
    assert linked(third) == [place_of(first)]
    assert [run.status for run in await harness.runs_of(wake)] == ["success"]


async def test_an_attempt_says_what_it_used(harness, recorded):
    async def work(run, _steps, _stop):
        usage = RunUsage(
            run_id=run.id,
            agent_id=run.agent_id,
            user_id=run.user_id,
            at=run.queued_at,
            model="fast",
            input_tokens=120,
            output_tokens=30,
            cost_micros=2_500,
        )
        yield StepSaved(role="assistant", content="Said in private.", usage=usage, is_last=True)

    harness.executor.default = work
    await harness.book(at=NOON, instructions="Asked in private.")
    await harness.turn_at(NOON)
    [span] = recorded()
    assert span.attributes["gen_ai.usage.input_tokens"] == 120
    assert span.attributes["wakeful.cost_dollars"] == 0.0025
    assert span.attributes["wakeful.run.trigger"] == "wake"
    assert "private" not in span.to_json()
