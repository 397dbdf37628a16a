"""Traces of runs at a collector: their spans, what is in them, and a collector that is not there."""

import json
import logging

import pytest
from prometheus_client.parser import text_string_to_metric_families

from harness import eventually
from live_server import running_server
from openai_server import call, calls, refuse, say
from otlp_server import OtlpServer
from wakeful.telemetry import otel

SECRET = "collector-key-4711"
MODEL_KEY = "sk-model-key-0815"


@pytest.fixture(autouse=True)
def _often(monkeypatch):
    monkeypatch.setattr(otel, "_EVERY_MS", 20)


@pytest.fixture
def collector():
    with OtlpServer() as collector:
        yield collector


def traced(settings, collector, **more):
    given = {"otel_endpoint": collector.origin, "otel_headers": f"x-key={SECRET}", "model_api_key": MODEL_KEY}
    return running_server(settings, **(given | more))


async def ask(server, *script, words="Hello"):
    """Let an agent answer one message, and return the session."""
    server.provider.then(*script)
    session = await server.session()
    async with server.watch(session) as client:
        await client.ask(words)
    return session


def ended_runs(count):
    return lambda spans: sum(span.name.startswith("invoke_agent") for span in spans) >= count


async def test_a_run_is_a_tree_of_spans(settings, collector):
    async with traced(settings, collector) as server:
        session = await ask(
            server, calls(*call("write_file", json.dumps({"path": "a.txt", "content": "secret words"}))), say("Done")
        )
        spans = await collector.has(ended_runs(1))
        [run] = await server.runs_of(session)
    [root] = [span for span in spans if not span.parent_id]
    [agent] = (await _agents_of(spans),)
    assert root.name == f"invoke_agent {agent}"
    children = [span for span in spans if span.parent_id == root.span_id]
    assert [span.name for span in children] == ["chat test", "execute_tool write_file", "chat test"]
    assert {span.trace_id for span in spans} == {root.trace_id}
    assert root.attributes["gen_ai.conversation.id"] == session
    assert (root.attributes["wakeful.run.id"], root.attributes["wakeful.run.status"]) == (run["id"], "success")
    assert root.resource["service.name"] == "wakeful"
    chat, tool = children[0], children[1]
    assert chat.attributes["gen_ai.provider.name"] == "openai"
    assert (chat.attributes["gen_ai.operation.name"], chat.attributes["gen_ai.request.model"]) == ("chat", "test")
    assert children[2].attributes["gen_ai.usage.input_tokens"] == 12
    assert tool.attributes["gen_ai.tool.name"] == "write_file"
    assert collector.paths[0] == "/v1/traces"
    assert collector.headers[0]["x-key"] == SECRET


async def _agents_of(spans):
    return next(span.attributes["gen_ai.agent.name"] for span in spans if "gen_ai.agent.name" in span.attributes)


async def test_content_and_secrets_are_not_in_traces(settings, collector):
    async with traced(settings, collector) as server:
        await ask(
            server, calls(*call("write_file", '{"path": "a", "content": "my diary"}')), say("Spoken"), words="Asked"
        )
        await collector.has(ended_runs(1))
    sent = b"".join(collector.bodies)
    assert b"execute_tool write_file" in sent
    for hidden in ("my diary", "Spoken", "Asked", SECRET, MODEL_KEY):
        assert hidden.encode() not in sent


async def test_content_is_sent_if_the_owner_wants_it_but_never_secrets(settings, collector):
    async with traced(settings, collector, otel_content=True) as server:
        written = json.dumps({"path": "a", "content": f"my diary and {SECRET}"})
        await ask(server, calls(*call("write_file", written)), say("Spoken"), words=f"Asked with {MODEL_KEY}")
        spans = await collector.has(ended_runs(1))
    sent = b"".join(collector.bodies)
    assert SECRET.encode() not in sent
    assert MODEL_KEY.encode() not in sent
    [tool] = [span for span in spans if span.name == "execute_tool write_file"]
    assert "my diary and [secret]" in tool.attributes["gen_ai.tool.call.arguments"]
    last = [span for span in spans if span.name == "chat test"][-1]
    assert json.loads(last.attributes["gen_ai.output.messages"]) == [
        {"role": "assistant", "parts": [{"type": "text", "content": "Spoken"}]}
    ]
    asked = json.loads(last.attributes["gen_ai.input.messages"])
    assert [message["role"] for message in asked] == ["system", "user", "assistant", "tool"]


async def test_failures_are_marked_with_their_code(settings, collector):
    async with traced(settings, collector) as server:
        await ask(server, calls(*call("no_such_tool_4711", "{}")), refuse(400, "No."))
        spans = await collector.has(ended_runs(1))
    by_name = {span.name: span for span in spans}
    assert "execute_tool no_such_tool_4711" not in by_name  # a name that a model made up
    assert by_name["execute_tool unknown"].error == "unknown_tool"
    [root] = [span for span in spans if not span.parent_id]
    failed = [span for span in spans if span.name == "chat test"][-1]
    assert root.error == failed.error == root.attributes["error.type"]
    assert root.attributes["wakeful.run.status"] == "failed"


async def test_a_wake_that_an_agent_booked_links_to_the_call_that_booked_it(settings, collector):
    booking = json.dumps({"call_type": "immediate", "additional_context_message": "Read a.txt with read_file."})
    async with traced(settings, collector) as server:
        await ask(server, calls(*call("schedule_recall", booking)), say("Booked"), say("Read"))
        spans = await collector.has(ended_runs(2))
    first, second = (span for span in spans if not span.parent_id)
    [booked] = [span for span in spans if span.name == "execute_tool schedule_recall"]
    assert booked.trace_id == first.trace_id != second.trace_id
    assert second.links == (booked.place,)
    assert first.links == ()


async def test_log_lines_of_a_run_have_its_trace(settings, collector, caplog):
    caplog.set_level(logging.INFO, logger="wakeful")
    async with traced(settings, collector) as server:
        await ask(server, say("Hello"))
        [root] = await collector.has(ended_runs(1)) and [span for span in collector.spans if not span.parent_id]
        found = (await server.call("GET", "/logs"))["lines"]
        assert await _ended_with(server, root.trace_id), found


async def _ended_with(server, trace_id):
    async def is_logged() -> bool:
        lines = (await server.call("GET", "/logs"))["lines"]
        return any(line["message"] == "run ended" and line["fields"].get("trace_id") == trace_id for line in lines)

    await eventually(is_logged)
    return True


@pytest.mark.parametrize(("status", "outcome"), [(400, "refused"), (302, "redirect")])
async def test_a_collector_that_refuses_stops_no_run_and_is_logged_once(settings, collector, status, outcome):
    collector.status = status
    async with traced(settings, collector) as server:
        for _ in range(3):
            seen = len(collector.bodies)
            session = await ask(server, say("Hello"))

            async def is_asked(before: int = seen) -> bool:
                return len(collector.bodies) > before

            await eventually(is_asked)
            assert [run["status"] for run in await server.runs_of(session)] == ["success"]
        lines = (await server.call("GET", "/logs"))["lines"]
        said = [line["fields"]["outcome"] for line in lines if line["message"] == "traces to the collector"]
        assert said == [outcome]
        assert await _count(server, outcome) >= 3
    assert set(collector.paths) == {"/v1/traces"}  # no redirect was followed


async def _count(server, outcome):
    answer = await server.rest.get("/metrics")
    families = {family.name: family for family in text_string_to_metric_families(answer.text)}
    return sum(
        sample.value
        for sample in families["wakeful_spans_sent"].samples
        if sample.name.endswith("_total") and sample.labels["outcome"] == outcome
    )


async def test_a_collector_that_is_not_there_stops_no_run(settings):
    with OtlpServer() as gone:
        endpoint = gone.origin
    async with running_server(settings, otel_endpoint=endpoint) as server:
        session = await ask(server, say("Hello"))
        assert [run["status"] for run in await server.runs_of(session)] == ["success"]
