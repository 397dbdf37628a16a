"""Clients that connect first, in mid-run, again or too late; and one run at a time."""

import asyncio

import pytest

from live_server import ENDS, Tap, assert_consecutive, eventually, kinds, of_kind, running_server, seqs, text_of
from openai_server import call, calls, improvise, refuse, say, thinking

WRITE = ("write_file", '{"path": "a.txt", "content": "hello"}')


async def begin(server, client, *words):
    """Let a run begin and say so far; return the rest of its answer."""
    tap = Tap()
    server.provider.then(tap)
    await client.say("Go on")
    for word in words:
        tap.say(word)
        await client.until("stream_delta")
    await tap.is_asked.wait()
    return tap


@pytest.mark.parametrize(
    "name", ["00000000-0000-7000-8000-000000000000", "nothing", "a'b\"c", "x" * 500, "%00", "%F0%9F%A6%9C"]
)
async def test_an_unknown_session_closes_with_4004(server, name):
    async with server.watch(name, is_fresh=False) as client:
        code, words = await client.closing()
    assert code == 4004
    assert words
    assert client.received == []


async def test_a_fresh_client_is_told_to_load_the_session_and_nothing_else(server, session):
    async with server.watch(session, is_fresh=False) as client:
        assert await client.next() == {"type": "session_sync"}
        await client.nothing_more()


async def test_a_client_that_comes_after_the_end_is_only_told_to_load_the_session(server, session, client):
    server.provider.then(say("Done."))
    await client.ask("Do it")
    async with server.watch(session, is_fresh=False) as late:
        assert await late.next() == {"type": "session_sync"}
        await late.nothing_more()


async def test_a_client_that_comes_in_mid_run_gets_the_replay_then_the_rest_then_a_sync(server, session, client):
    server.provider.then(calls(*thinking("Hm."), *call(*WRITE)))
    tap = await begin(server, client, "One ", "two ")
    before = client.received[1:]
    async with server.watch(session, is_fresh=False) as late:
        replayed = await late.until("replay_end")
        assert replayed[0] == before[0]
        assert replayed[0]["type"] == "stream_start"
        assert replayed[1] == {"type": "replay_start", "count": len(before) - 1}
        assert replayed[2:-1] == before[1:]
        tap.say("three")
        live = await late.expect("stream_delta")
        tap.end()
        rest = await late.until("session_sync")
        assert kinds(rest) == ["stream_end", "session_sync"]
        assert rest[-1] == {"type": "session_sync"}
        await late.nothing_more()
    assert (await client.until("stream_end"))[0] == live
    assert_consecutive(late.received, first=1)
    assert text_of(late.received) == "One two three" == rest[0]["content"]


async def test_the_sync_after_a_replay_finds_the_whole_answer_saved(server, session, client):
    tap = await begin(server, client, "Half ")
    async with server.watch(session, is_fresh=False) as late:
        await late.until("replay_end")
        tap.say("and half")
        tap.end()
        await late.until("session_sync")
        assert (await server.messages(session))[-1]["content"] == "Half and half"


async def test_a_replay_of_a_run_that_has_only_begun_counts_nothing(server, session, client):
    tap = await begin(server, client)
    await client.expect("stream_start")
    async with server.watch(session, is_fresh=False) as late:
        start, replay_start, replay_end = await late.until("replay_end")
    assert start["type"] == "stream_start"
    assert (replay_start["count"], replay_end["type"]) == (0, "replay_end")
    tap.end()
    await client.until("stream_end")


async def test_a_replay_shows_only_the_run_that_is_under_way(server, session, client):
    server.provider.then(say("The first answer."))
    await client.ask("One")
    tap = await begin(server, client, "The second")
    async with server.watch(session, is_fresh=False) as late:
        replayed = await late.until("replay_end")
    assert text_of(replayed) == "The second"
    assert len({frame["run_id"] for frame in replayed if "run_id" in frame}) == 1
    tap.end()
    await client.until("stream_end")


async def test_after_a_number_only_what_is_lacking_is_sent(server, session, client):
    server.provider.then(calls(*call(*WRITE)))
    tap = await begin(server, client, "One ", "two ")
    known = client.received[1:]
    for number in range(len(known) + 1):
        async with server.watch(session, after=number) as again:
            assert [await again.next() for _ in known[number:]] == known[number:]
    async with server.watch(session, after=2) as again:
        tap.say("three")
        tap.end()
        frames = await again.until("stream_end")
        assert_consecutive(frames, first=3)
        await again.nothing_more()
    await client.until("stream_end")


async def test_after_the_last_number_of_an_ended_run_there_is_nothing_to_send(server, session, client):
    server.provider.then(say("Done."))
    frames = await client.ask("Do it")
    async with server.watch(session, after=frames[-1]["seq"]) as again:
        await again.nothing_more()


async def test_after_a_number_the_frames_of_runs_that_ended_meanwhile_are_sent(server, session, client):
    server.provider.then(say("One."), say("Two."))
    first = await client.ask("One")
    second = await client.ask("Two")
    async with server.watch(session, after=first[1]["seq"]) as again:
        frames = [await again.next() for _ in range(len(first) - 2 + len(second))]
        await again.nothing_more()
    assert frames == [*first[2:], *second]


@pytest.mark.parametrize("after", ["999999", "-1", "1.5", "abc", "99999999999999999999999", "%C2%B2", "0x1", "1e3"])
async def test_a_number_that_was_never_given_is_answered_with_a_sync(server, session, client, after):
    server.provider.then(say("Done."))
    await client.ask("Do it")
    async with server.watch(session, after=after) as again:
        assert await again.next() == {"type": "session_sync"}
        await again.nothing_more()


async def test_a_number_of_another_session_in_mid_run_is_answered_with_a_sync_and_a_replay(server, session, client):
    tap = await begin(server, client, "One ")
    async with server.watch(session, after=777) as again:
        assert kinds(await again.until("replay_end")) == [
            "session_sync",
            "stream_start",
            "replay_start",
            "stream_delta",
            "replay_end",
        ]
        tap.end()
        assert kinds(await again.until("session_sync")) == ["stream_end", "session_sync"]
    await client.until("stream_end")


async def test_a_number_whose_frames_are_gone_is_answered_with_a_sync(server, session, client):
    server.provider.then(say("One."), say("Two."))
    await client.ask("One")
    await client.ask("Two")
    later = server.node.clock.now()
    await server.node.store.write(lambda tx: tx.sessions.delete_old_events(later))
    async with server.watch(session, after=1) as again:
        assert await again.next() == {"type": "session_sync"}
        await again.nothing_more()


async def test_a_message_sent_on_receipt_of_the_end_is_accepted_a_hundred_times(backend_settings):
    async with running_server(backend_settings, always=improvise) as server:
        session = await server.session()
        async with server.watch(session) as client:
            for number in range(100):
                frames = await client.ask(str(number))
                assert frames[-1].get("content") == f"You said: {number}", frames
            assert_consecutive(client.received, first=1)
            assert kinds(client.received).count("session_sync") == 1
        assert len(await server.messages(session)) == 200


async def test_a_second_message_during_a_run_is_refused_to_its_sender_alone(server, session, client):
    tap = await begin(server, client, "One ")
    async with server.watch(session, is_fresh=False) as second:
        await second.until("replay_end")
        await second.say("Me too!")
        refused = await second.expect("error")
        assert set(refused) == {"type", "message", "code"}
        assert refused["code"] == "session_busy"
        assert "Wait for its end or stop it" in refused["message"]
        tap.say("two")
        tap.end()
        await second.until("session_sync")
    frames = await client.until("stream_end")
    assert of_kind(frames, "error") == []
    assert frames[-1]["content"] == "One two"
    assert [message["content"] for message in await server.messages(session)] == ["Go on", "One two"]
    server.provider.then(say("Now you."))
    assert (await client.ask("Me too!"))[-1]["content"] == "Now you."


async def test_of_many_messages_at_once_one_is_taken_and_all_others_are_refused(server, session, client):
    tap = Tap()
    server.provider.then(tap)
    await asyncio.gather(*[client.say(f"Number {number}") for number in range(10)])
    told = []
    while len(of_kind(told, "error")) < 9 or not of_kind(told, "stream_start"):
        told.append(await client.next())
    assert {frame["code"] for frame in of_kind(told, "error")} == {"session_busy"}
    tap.end()
    await client.until("stream_end")
    assert [message["role"] for message in await server.messages(session)] == ["user", "assistant"]


async def test_a_headless_run_sends_the_same_frames_and_then_a_sync(server, session, client):
    server.provider.then(calls(*thinking("I wake."), *call(*WRITE)), say("Written."))
    await server.book(session, "Write a.txt")
    frames = await client.until("session_sync")
    assert kinds(frames) == [
        "recall_update",
        "stream_start",
        "recall_update",
        "thinking_delta",
        "thinking_end",
        "tool_started",
        "tool_call",
        "stream_delta",
        "stream_end",
        "session_sync",
    ]
    assert_consecutive(frames, first=1)
    messages = await server.messages(session)
    assert [message["role"] for message in messages] == ["user", "assistant", "tool", "assistant"]
    assert (messages[0]["content"], messages[0]["is_recall"], messages[0]["source"]) == ("Write a.txt", True, "recall")
    assert messages[frames[-2]["message_index"]]["content"] == "Written."


async def test_a_client_that_came_in_the_middle_of_a_headless_run_gets_one_sync_at_its_end(server, session):
    tap = Tap()
    server.provider.then(tap)
    await server.book(session)
    tap.say("Well ")
    await tap.is_asked.wait()
    await eventually(lambda: _has_begun(server, session))
    async with server.watch(session, is_fresh=False) as late:
        await late.until("replay_end")
        tap.end()
        await late.until("session_sync")
        await late.nothing_more()
        assert len(of_kind(late.received, "session_sync")) == 1


async def _has_begun(server, session):
    [run] = await server.runs_of(session)
    return (await server.call("GET", f"/runs/{run['id']}/events"))["events"]


async def test_a_headless_run_that_fails_ends_with_an_error_and_a_sync_and_its_recall_has_failed(
    server, session, client
):
    server.provider.then(refuse(400, "No such model."))
    wake = await server.book(session)
    frames = await client.until("session_sync")
    assert kinds(frames) == ["recall_update", "stream_start", "recall_update", "error", "session_sync"]
    _, fired, failed = of_kind(frames, "recall_update")
    assert [(fired["action"], fired["status"]), (failed["action"], failed["status"])] == [
        ("fired", "fired"), ("failed", "cancelled"),
    ]  # fmt: skip
    assert failed["recall_id"] == wake.id
    assert "No such model." in frames[-2]["message"]
    shown = await server.call("GET", f"/wakes/{wake.id}")
    assert (shown["status"], "No such model." in shown["error"]) == ("failed", True)


async def test_stopping_a_run_that_waits_does_not_end_the_stream_of_the_one_at_work(backend_settings):
    async with running_server(backend_settings, max_headless_runs=1) as server:
        busy, session = await server.session(), await server.session()
        hold = Tap()
        server.provider.then(hold)
        await server.book(busy, "Take the only slot")
        await hold.is_asked.wait()
        await server.book(session, "Wait for a slot")
        [waiting] = await eventually(lambda: server.runs_of(session))
        async with server.watch(session) as client:
            tap = await begin(server, client, "One ")
            await server.call("POST", f"/runs/{waiting['id']}/stop")
            tap.say("two")
            tap.end()
            frames = await client.until(*ENDS)
            assert kinds(frames) == ["recall_update", "stream_delta", "stream_end"]
            assert frames[0]["action"] == "cancelled"
        assert (await server.run(waiting["id"]))["status"] == "stopped"
        hold.end()


async def test_every_client_gets_every_number_once_whenever_it_came(server, session, client):
    tap = await begin(server, client, "One ")
    async with server.watch(session, is_fresh=False) as second, server.watch(session, after=1) as third:
        await second.until("replay_end")
        tap.say("two ")
        await client.until("stream_delta")
        async with server.watch(session, is_fresh=False) as fourth:
            tap.say("three")
            tap.end()
            for watcher in (client, second, third, fourth):
                await watcher.until("stream_end")
    last = seqs(client.received)[-1]
    for watcher, first in ((client, 1), (second, 1), (third, 2), (fourth, 1)):
        assert seqs(watcher.received) == list(range(first, last + 1))


async def test_numbers_go_on_over_runs_of_every_kind(server, session, client):
    server.provider.then(say("One."))
    await client.ask("One")
    server.provider.then(say("Two."))
    await server.book(session)
    await client.until("session_sync")
    tap = await begin(server, client, "Three")
    await server.stop(session)
    await client.until("stream_stopped")
    assert_consecutive(client.received, first=1)
    assert tap.is_asked.is_set()
