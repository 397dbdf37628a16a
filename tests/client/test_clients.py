"""The Python client, against a running server."""

import asyncio
import subprocess
import sys
from contextlib import nullcontext
from datetime import UTC, datetime, timedelta

import pytest

from live_server import Tap
from network.stranger import a_stranger
from network.tls_proxy import tls_proxy
from openai_server import call, calls, say, stream, text, thinking, usage
from wakeful.app.listening import announced
from wakeful.client import (
    AsyncWakeful,
    NotFound,
    NotReached,
    NotSignedIn,
    Refused,
    RunFailed,
    Wakeful,
    WakefulClientError,
)
from wakeful.client.calls import wakes as list_wakes


@pytest.fixture
async def server(sqlite_server):
    async with sqlite_server.as_new_owner() as server:
        server.provider.always = None
        yield server


@pytest.fixture
async def client(server):
    async with AsyncWakeful(server.address, server.token) as client:
        yield client


@pytest.fixture
async def session(server):
    return await server.session()  # with a title, so that no model is asked for one


async def in_thread(server, use):
    """Use the synchronous client, which would block the server's own event loop."""

    def work():
        with Wakeful(server.address, server.token) as client:
            return use(client)

    return await asyncio.to_thread(work)


async def test_an_agent_answers(client, server, session):
    server.provider.then(stream(*thinking("Hm."), *text("Hel", "lo"), usage(12, 3)), say("Fine"))
    answer = await client.ask("Hi", session=session)
    assert (answer.text, answer.reasoning, answer.session_id, answer.output_tokens) == ("Hello", "Hm.", session, 3)
    assert (await client.ask("And?", session=answer.session_id)).text == "Fine"
    assert [each["content"] for each in await server.messages(session)] == ["Hi", "Hello", "And?", "Fine"]


async def test_the_synchronous_client_does_the_same(server, session):
    server.provider.then(say("Hello"), say("Once ", "upon ", "a time"))

    def use(client):
        answer = client.ask("Hi", session=session)
        reply = client.stream("A story", session=session)
        return answer.text, "".join(reply), reply.answer.run_id

    first, story, run_id = await in_thread(server, use)
    assert (first, story) == ("Hello", "Once upon a time")
    assert (await server.run(run_id))["status"] == "success"


async def test_text_comes_as_it_is_written(client, server, session):
    tap = Tap()
    server.provider.then(tap)
    pieces = client.stream("Hi", session=session).__aiter__()
    first = asyncio.create_task(anext(pieces))
    await asyncio.wait_for(tap.is_asked.wait(), 10)
    tap.say("Hello")
    assert await asyncio.wait_for(first, 10) == "Hello"
    tap.end()
    assert [each async for each in pieces] == []


async def test_a_wake_is_booked_listed_explained_and_cancelled(client, server):
    booked = await client.book("Look after the tea.", when="in 2 hours", comment="Tea")
    assert booked.status == "pending"
    assert abs(booked.at - datetime.now(UTC) - timedelta(hours=2)) < timedelta(minutes=1)
    every = await client.book("Look at the door.", every=timedelta(hours=1))
    assert (every.interval_seconds, every.cron) == (3600, None)
    assert [each.id for each in await client.wakes()] == [every.id, booked.id]
    assert "You scheduled it for" in (await client.why(booked.id))[0].text
    await client.cancel(booked.id)
    assert [each.id for each in await client.wakes()] == [every.id]
    assert {each.status for each in await client.wakes(ended=True)} == {"pending", "cancelled"}


def test_wakes_are_listed_in_the_longest_pages_that_the_server_has():
    assert next(list_wakes(None, is_live=True)).path == "/wakes?limit=200&live=true"


async def test_a_wake_without_a_time_runs_at_once(server):
    server.provider.then(say("Done"))
    wake = await in_thread(server, lambda client: client.book("Write a note.", comment="Now"))
    for _ in range(200):
        if [each.status for each in await in_thread(server, lambda client: client.wakes(ended=True))] == ["fired"]:
            break
        await asyncio.sleep(0.05)
    assert [each["wake_id"] for each in (await server.call("GET", "/runs"))["runs"]] == [wake.id]


async def test_agents_are_found_by_name_or_id(client, server):
    [first] = await client.agents()
    assert first.name == "Wakeful"
    other = await server.call("POST", "/agents", json={"name": "Other"})
    wake = await client.book("Look.", when="in 1 hour", agent="Other")
    assert wake.agent_id == other["id"]
    assert [each.id for each in await client.wakes(agent=other["id"])] == [wake.id]
    with pytest.raises(WakefulClientError, match="You have no agent 'Nobody'"):
        await client.ask("Hi", agent="Nobody")
    await server.call("POST", "/agents", json={"name": "Other"})
    with pytest.raises(WakefulClientError, match=other["id"]):
        await client.ask("Hi", agent="Other")


async def test_the_servers_own_words_are_in_the_errors(client, server):
    with pytest.raises(NotFound, match="There is no wake 'no-such-wake'") as refused:
        await client.cancel("no-such-wake")
    assert (refused.value.status, refused.value.code) == (404, "no_such_wake")
    with pytest.raises(Refused, match="is not a time that can be read") as refused:
        await client.book("Look.", when="at the end of time")
    assert refused.value.status == 400
    async with AsyncWakeful(server.address, "wkf_wrong") as stranger:
        with pytest.raises(NotSignedIn, match="not known here"):
            await stranger.agents()
        with pytest.raises(NotSignedIn):
            await stranger.ask("Hi", session="mine")


async def test_a_failed_run_says_why_and_what_there_was(client, server, session):
    server.provider.then(stream(*text("Half an ans"), finish=None, done=False))
    with pytest.raises(RunFailed, match="gave no answer") as failed:
        await client.ask("Hi", session=session)
    assert failed.value.text == "Half an ans"


async def test_a_server_that_is_away_is_named(server):
    with Wakeful("http://127.0.0.1:1", "token") as client:
        with pytest.raises(NotReached, match=r"http://127\.0\.0\.1:1 cannot be reached.*Is it running"):
            client.agents()
        with pytest.raises(NotReached):
            client.ask("Hi")


async def test_an_answer_that_nobody_has_read_is_not_there_yet(client):
    with pytest.raises(WakefulClientError, match="Iterate"):
        _ = client.stream("Hi").answer


def test_the_token_goes_to_no_other_machine_by_itself(monkeypatch, tmp_path):
    (tmp_path / "token").write_text("wkf_secret\n")
    monkeypatch.setenv("WAKEFUL_CONFIG_DIR", str(tmp_path))
    monkeypatch.delenv("WAKEFUL_TOKEN", raising=False)
    monkeypatch.delenv("WAKEFUL_URL", raising=False)
    with Wakeful() as client:
        assert "wkf_secret" not in repr(client)
    with pytest.raises(WakefulClientError, match=r"no token for https://wakeful\.example"):
        Wakeful("https://wakeful.example")
    with pytest.raises(WakefulClientError, match="unencrypted"):
        Wakeful("http://wakeful.example", "token")
    with pytest.raises(WakefulClientError, match="not the address"):
        Wakeful("wakeful.example")


@pytest.fixture
def own_token(monkeypatch, tmp_path):
    """The token that this machine's server has left in its config directory."""
    for name in ("WAKEFUL_TOKEN", "WAKEFUL_URL", "WAKEFUL_PORT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("WAKEFUL_CONFIG_DIR", str(tmp_path))
    monkeypatch.setenv("WAKEFUL_DATA_DIR", str(tmp_path / "data"))
    (tmp_path / "token").write_text("wkf_secret\n")


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "[::1]"])
@pytest.mark.parametrize("announces", [None, "http://127.0.0.1:1", "http://127.0.0.2:{}"])
async def test_the_token_of_this_machine_is_for_its_running_server_alone(own_token, tmp_path, host, announces):
    with a_stranger(host.strip("[]"), answer={"agents": []}) as (port, sent):
        running = announced(tmp_path / "data", announces.format(port), "0") if announces else nullcontext()
        async with running, AsyncWakeful(f"http://{host}:{port}") as client:
            await asyncio.sleep(0)  # it is announced
            with pytest.raises(NotReached, match=r"data directory .*(wakeful serve|runs at)"):
                await client.agents()
            with pytest.raises(NotReached, match="data directory"):
                await client.ask("Hi", session="1")
        assert sent == []
        async with AsyncWakeful(f"http://{host}:{port}", "named") as client:
            assert await client.agents() == []
        assert "Bearer named" in sent[0]


@pytest.mark.parametrize("bound", ["127.0.0.1", "0.0.0.0"])
@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "LOCALHOST"])
@pytest.mark.parametrize("is_in_file", [True, False])
async def test_the_token_of_this_machine_goes_to_its_running_server(
    own_token, monkeypatch, tmp_path, bound, host, is_in_file
):
    if is_in_file:
        monkeypatch.delenv("WAKEFUL_DATA_DIR")
        (tmp_path / "wakeful.toml").write_text('data_dir = "data"\n')
    with a_stranger(answer={"agents": []}) as (port, sent), Wakeful(f"http://{host}:{port}/") as client:
        async with announced(tmp_path / "data", f"http://{bound}:{port}", "0"):
            await asyncio.sleep(0)
            assert await asyncio.to_thread(client.agents) == []
        assert "Bearer wkf_secret" in sent[0]
        with pytest.raises(NotReached, match="wakeful serve"):  # it has ended, and another program has its port
            client.agents()
    assert len(sent) == 1


@pytest.mark.parametrize("token", [None, "named"])
@pytest.mark.parametrize(
    "url",
    ["http://me@127.0.0.1:8420", "http://127.0.0.1:8420@evil.example", "http://127.0.0.1.evil.example", "http://a:b"],
)
def test_an_address_that_only_looks_like_this_machine_is_refused(own_token, url, token):
    with pytest.raises(WakefulClientError, match=r"not the address|unencrypted"):
        Wakeful(url, token)


async def test_certificates_are_checked_however_https_is_written(server, tmp_path):
    async with (
        tls_proxy("localhost", int(server.address.rpartition(":")[2]), tmp_path) as port,
        AsyncWakeful(f"HTTPS://localhost:{port}", server.token) as client,
    ):
        with pytest.raises(NotReached, match="CERTIFICATE_VERIFY_FAILED"):
            await client.agents()


async def test_a_redirect_is_not_followed():
    with a_stranger() as (port, sent):
        async with AsyncWakeful(f"http://127.0.0.1:{port}", "named") as client:
            with pytest.raises(Refused):
                await client.agents()
        assert len(sent) == 1


def test_importing_the_client_loads_nothing_of_the_server():
    program = (
        "import sys, wakeful.client; print(*sorted(n for n in sys.modules if n.startswith(('wakeful', 'fastapi'))))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert all(name == "wakeful" or name.startswith("wakeful.client") for name in done.stdout.split())


async def test_a_tool_call_is_part_of_the_answer(client, server, session):
    server.provider.then(calls(*text("Let me look."), *call("list_files", "{}"), usage(10, 5)), say("Nothing."))
    assert (await client.ask("Look", session=session)).text == "Let me look.\n\nNothing."
