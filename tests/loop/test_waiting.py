"""Waiting for a model: frames meanwhile, retries, timeouts. A real provider, a manual clock."""

import asyncio
import re
import socket
from contextlib import asynccontextmanager
from datetime import timedelta

import pytest

import anthropic_server
from harness import Harness, eventually
from network.tls_proxy import tls_proxy
from openai_server import OpenAIServer, call, chunk, event, hang, hang_up, refuse, reply, say, stream, text
from wakeful.core.errors import WakefulError
from wakeful.core.events import StepSaved, StreamDelta, StreamEnd, StreamStart, Waiting
from wakeful.loop.loop import AgentLoop
from wakeful.loop.state import RetryLimits
from wakeful.models.endpoint import Endpoint
from wakeful.models.openai_chat import OpenAIChat
from wakeful.runs.executor import Stop

NAME = "openai-chat:test"


class Following:
    """Someone who follows a run of the loop, and moves its clock."""

    def __init__(self, harness, loop, events):
        self.harness = harness
        self.loop = loop
        self._events = events
        self.said = []

    async def next(self, kind=None):
        """Return the next event, or the next of a kind."""
        async with asyncio.timeout(30):
            while True:
                event = await anext(self._events)
                self.said.append(event)
                if kind is None or isinstance(event, kind):
                    return event

    async def after(self, seconds, kind=Waiting, sent=None):
        """Let time pass while the run waits, and return what it says then; first let arrive what a server sends."""
        following = asyncio.ensure_future(self.next(kind))
        if sent is not None:
            await sent.wait()
            await asyncio.sleep(0.3)  # a busy machine takes its time
        await self.waits(following)
        assert not following.done(), f"{following.result()} came too early"
        self.harness.clock.advance(timedelta(seconds=seconds))
        return await following

    async def rest(self):
        """Return everything up to the end."""
        async with asyncio.timeout(30):
            return [each async for each in self._events]

    async def fail(self, step=1):
        """Advance the clock in steps of `seconds` until the run fails, and return its error and its last waits."""
        waits = []

        async def listen():
            async for each in self._events:
                self.said.append(each)
                waits.append(each)

        listening = asyncio.ensure_future(listen())
        while not listening.done():
            await self.waits(listening)
            self.harness.clock.advance(timedelta(seconds=step))
        with pytest.raises(WakefulError) as failure:
            await listening
        return failure.value, [each for each in waits if isinstance(each, Waiting)]

    async def waits(self, following):
        """Return when the run waits for the clock, or has ended; what it waits for besides has had its chance."""
        await eventually(lambda: self._is_waiting(following))
        await asyncio.sleep(0.02)  # for what is on its way over a socket
        await eventually(lambda: self._is_waiting(following))

    async def _is_waiting(self, following):
        return following.done() or any(not nudged.is_set() for _, nudged in self.harness.clock.waiting)


@pytest.fixture
async def harness(tmp_path):
    harness = Harness({"data_dir": tmp_path, "config_dir": tmp_path, "store_encryption": False})
    harness.executor = None  # so that the node gets its own loop
    node = harness.node = harness.another_node()
    async with node.opened():
        await node.agents.add_user(harness.user)
        yield harness


async def _note_nothing():
    """Stand in for the note that a run makes its first call."""


@asynccontextmanager
async def followed(harness, base_url, *, stop=None, patience=None, **agent):
    """Begin a run whose model is at an address."""
    loop: AgentLoop = harness.node.engine.runner.executor
    loop.patience = patience or RetryLimits()
    endpoint = Endpoint(base_url)
    loop.models.use(NAME, OpenAIChat("test", endpoint, harness.clock))
    made = await harness.node.agents.add(harness.make_agent(**({"model": NAME, "toolsets": ("files",)} | agent)))
    session = await harness.node.sessions.open(made.id, harness.user.id)
    run = await harness.node.runs.ask(session.id, harness.user.id, "Go on")
    events = loop.execute(run, [], stop or Stop(), _note_nothing)
    try:
        yield Following(harness, loop, events)
    finally:
        await events.aclose()
        await endpoint.aclose()


def origin(server):
    return server.base_url.removesuffix("/v1")


async def headers_only(exchange):
    """Begin an answer and say nothing."""
    await exchange.begin()
    await hang(exchange)


@pytest.mark.parametrize("silence", [hang, headers_only])
async def test_a_silent_model_is_shown_as_waited_for_within_five_seconds_and_again(harness, silence):
    async with OpenAIServer(silence) as server, followed(harness, server.base_url) as run:
        assert isinstance(await run.next(), StreamStart)
        host = origin(server)
        assert await run.after(5) == Waiting(for_="model", reason=f"no answer yet from {host} (5 s)")
        assert await run.after(15) == Waiting(for_="model", reason=f"no answer yet from {host} (20 s)")
        assert await run.after(20) == Waiting(for_="model", reason=f"no answer yet from {host} (40 s)")


async def test_a_model_that_stalls_in_the_middle_is_shown_and_given_up_and_its_words_are_kept(harness):
    async with OpenAIServer(stream(*text("Half an "), 3600.0)) as server, followed(harness, server.base_url) as run:
        assert (await run.next(StreamDelta)).delta == "Half an "
        assert (await run.after(4)).reason == f"nothing more from {origin(server)} (4 s)"
        where = origin(server)
        error, waits = await run.fail()
    assert error.code == "model_cut_off"
    assert f"{where} has said nothing for 65 s, in the middle of its answer." in error.message
    assert [each.data for each in run.said if isinstance(each, StepSaved)] == [{"cut_off": True}]
    assert [each.reason.rpartition(" ")[0].rpartition("(")[2] for each in waits] == ["10", "20", "40", "60"]


async def test_a_long_call_of_a_tool_is_shown_as_being_written(harness):
    sent, go_on = asyncio.Event(), asyncio.Event()

    async def answer(exchange):
        await exchange.begin()
        pieces = call("write_file", '{"path": "a.txt", ', '"content": "' + "x" * 1000)
        await exchange.send(b"".join(event(piece) for piece in pieces))
        sent.set()
        await go_on.wait()
        await exchange.send(event(chunk({"tool_calls": [{"index": 0, "function": {"arguments": "y"}}]})))
        await hang(exchange)

    async with OpenAIServer(answer) as server, followed(harness, server.base_url) as run:
        assert (await run.after(3, sent=sent)).reason.startswith("nothing more from ")
        harness.clock.advance(timedelta(seconds=6))
        go_on.set()
        await asyncio.sleep(0.3)  # for the piece to come over the socket
        assert re.fullmatch(r"the model is writing \(1,0\d\d characters so far\)", (await run.after(1)).reason)


async def test_an_answer_that_is_not_streamed_is_shown_as_being_written(harness):
    sent, go_on = asyncio.Event(), asyncio.Event()

    async def answer(exchange):
        await exchange.begin()
        await exchange.send(event(chunk({"content": "What is wanted"})))
        sent.set()
        await go_on.wait()
        await exchange.send(event(chunk({"content": " here?"})))
        await hang(exchange)

    async with OpenAIServer(answer) as server, followed(harness, server.base_url, planning=True) as run:
        assert (await run.after(3, sent=sent)).reason.startswith("nothing more from ")
        harness.clock.advance(timedelta(seconds=6))
        go_on.set()
        await asyncio.sleep(0.3)  # for the piece to come over the socket
        assert (await run.after(1)).reason == "the model is writing (20 characters so far)"


async def test_silence_is_tried_once_more_and_then_the_run_fails_with_words(harness):
    patience = RetryLimits(first=100)
    async with OpenAIServer(hang, hang) as server, followed(harness, server.base_url, patience=patience) as run:
        where = origin(server)
        error, waits = await run.fail(10)
    told = [f"no answer yet from {where} ({seconds} s)" for seconds in (10, 20, 40, 60, 80)]
    assert [each.reason for each in waits][:5] == told
    assert [each.retry_in for each in waits if each.retry_in is not None] == [1.0]
    assert error.code == "model_busy"
    assert re.search(rf"{where} has said nothing for 1\d\d s\. It was asked 2 times in 2\d\d s\.", error.message)
    assert "Test the agent's model" in error.message


# ── What is tried again ─────────────────────────────────────────────────────────────────────────────────────────────


def unused_port():
    with socket.create_server(("127.0.0.1", 0)) as free:
        return free.getsockname()[1]


BAD_GATEWAY = reply(502, b"<html><h1>502 Bad Gateway</h1></html>", {"Content-Type": "text/html"})


@pytest.mark.parametrize(
    ("answer", "reason", "seconds"),
    [
        pytest.param(BAD_GATEWAY, "Bad Gateway (HTTP 502)", 1.0, id="502"),
        pytest.param(refuse(503, "Overloaded"), "Overloaded (HTTP 503)", 1.0, id="503"),
        pytest.param(
            refuse(503, "Overloaded", {"Retry-After": "7"}), "Overloaded (HTTP 503)", 7.0, id="503 with a time"
        ),
        pytest.param(refuse(429, "Slow down"), "Slow down (HTTP 429)", 1.0, id="429"),
        pytest.param(
            refuse(429, "Slow down", {"Retry-After": "45"}), "Slow down (HTTP 429)", 45.0, id="429 with a time"
        ),
        pytest.param(hang_up, "cannot be reached", 1.0, id="hung up"),
    ],
)
async def test_each_retry_says_why_and_when(harness, answer, reason, seconds):
    async with OpenAIServer(answer, say("Now.")) as server, followed(harness, server.base_url) as run:
        told = await run.next(Waiting)
        assert reason in told.reason
        assert (told.for_, told.retry_in) == ("model", seconds)
        for left in range(int(seconds) - 20, 0, -20):  # a long pause is announced again
            assert await run.after(20) == Waiting(for_="model", reason=told.reason, retry_in=float(left))
        ended = asyncio.ensure_future(run.next(StreamEnd))
        await run.waits(ended)
        harness.clock.advance(timedelta(seconds=seconds))
        assert (await ended).content == "Now."


async def test_a_model_that_refuses_every_time_ends_the_run_with_words_and_no_silence(harness):
    async with OpenAIServer(*[BAD_GATEWAY] * 7) as server, followed(harness, server.base_url) as run:
        told = [await run.next(Waiting)]
        for seconds in (1, 2, 4, 8):
            told.append(await run.after(seconds))
        told.append(await run.after(16))
        error, more = await run.fail()
    assert [each.retry_in for each in told] == [1.0, 2.0, 4.0, 8.0, 16.0, 32.0]
    assert [each.retry_in for each in more] == [12.0]
    assert re.fullmatch(
        r"The model 'openai-chat:test' cannot answer now: Bad Gateway \(HTTP 502\)\. It was asked 7 times in 6\d s\. "
        r"Test the agent's model, which says whether its endpoint answers, then continue this run\.",
        error.message,
    )


@pytest.mark.parametrize("host", ["127.0.0.1", "no-such-host.invalid"])
async def test_an_address_where_nobody_is_is_told_and_tried_again(harness, host):
    async with followed(harness, f"http://{host}:{unused_port()}/v1?key=s3cret") as run:
        told = await run.next(Waiting)
        assert told.reason.startswith(f"http://{host}:")
        assert "cannot be reached" in told.reason
        assert "s3cret" not in told.reason
        assert told.retry_in == 1.0


async def test_a_server_that_speaks_no_tls_is_not_tried_again(harness):
    async def answer(_, writer):
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        await writer.drain()
        writer.close()

    plain = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with plain, followed(harness, f"https://127.0.0.1:{plain.sockets[0].getsockname()[1]}/v1") as run:
        error, waits = await run.fail(0)
    assert (error.code, waits) == ("model_failed", [])
    assert "cannot be reached" in error.message
    assert "SSL" in error.message


async def test_a_certificate_that_nobody_trusts_is_not_tried_again(harness, tmp_path):
    async with (
        tls_proxy("localhost", unused_port(), tmp_path) as port,
        followed(harness, f"https://localhost:{port}/v1") as run,
    ):
        error, waits = await run.fail(0)
    assert (error.code, waits) == ("model_failed", [])
    assert "CERTIFICATE_VERIFY_FAILED" in error.message


# ── The run's own time ──────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_silent_model_ends_the_run_inside_its_limit_with_words(harness):
    limit = timedelta(seconds=60)
    async with OpenAIServer(hang, hang) as server, followed(harness, server.base_url, run_limit=limit) as run:
        began = harness.clock.monotonic()
        where = origin(server)
        error, waits = await run.fail()
        assert harness.clock.monotonic() - began <= 60
    assert error.code == "time_limit"
    assert error.message.startswith("The run's time limit of 60 s was used up while it waited for the model")
    assert re.search(rf"{where} has said nothing for 2\d s\.", error.message)
    assert "run_limit_seconds" in error.message
    [again] = [number for number, each in enumerate(waits) if each.retry_in == 1.0]
    assert re.fullmatch(rf"{where} has said nothing for [23]\d s\.", waits[again].reason)
    for told in (waits[:again], waits[again + 1 :]):
        assert len(told) == 3
        assert all(each.reason.startswith(f"no answer yet from {where} (") for each in told)


async def test_a_pause_that_the_run_has_no_time_for_is_not_waited_for(harness):
    answer = refuse(429, "Slow down", {"Retry-After": "3600"})
    async with OpenAIServer(answer) as server, followed(harness, server.base_url) as run:
        error, waits = await run.fail(0)
    assert (error.code, waits) == ("model_busy", [])
    assert "The next attempt would be in 3600 s, but the run has 1798 s left." in error.message


async def test_stop_cuts_off_a_pause_before_a_retry(harness):
    stop = Stop()
    async with OpenAIServer(refuse(503, "No")) as server, followed(harness, server.base_url, stop=stop) as run:
        await run.next(Waiting)
        ended = asyncio.ensure_future(run.rest())
        await run.waits(ended)
        stop.request()
        assert await ended == []


async def test_an_answer_that_comes_at_once_tells_of_no_waiting(harness):
    async with OpenAIServer(say("Here.")) as server, followed(harness, server.base_url) as run:
        assert not [event for event in await run.rest() if isinstance(event, Waiting)]


async def test_an_sdk_leaves_retries_to_the_loop_which_tells_of_them(harness, monkeypatch):
    monkeypatch.setenv("ANTHROPIC_API_KEY", "s3cret")
    busy = refuse(529, {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}})
    async with OpenAIServer(busy, anthropic_server.answer) as server:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", origin(server))
        async with followed(harness, server.base_url, model="anthropic:claude-for-tests") as run:
            told = await run.next(Waiting)
            assert (told.reason, told.retry_in) == ("Overloaded (HTTP 529)", 1.0)
            ended = asyncio.ensure_future(run.next(StreamEnd))
            await run.waits(ended)
            harness.clock.advance(timedelta(seconds=1))
            assert (await ended).content == "Hello."


async def test_a_silent_model_of_an_sdk_is_named_by_its_address(harness, monkeypatch):
    monkeypatch.setenv("ANTHROPIC_API_KEY", "s3cret")
    async with OpenAIServer(hang) as server:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", origin(server))
        async with followed(harness, server.base_url, model="anthropic:claude-for-tests") as run:
            following = asyncio.ensure_future(run.next(Waiting))
            await eventually(lambda: is_asked(server), 10)
            await run.waits(following)
            harness.clock.advance(timedelta(seconds=5))
            assert (await following).reason == f"no answer yet from {origin(server)} (5 s)"


async def is_asked(server):
    return bool(server.requests)
