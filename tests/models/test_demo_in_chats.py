"""The demo model in a whole server: every sentence it understands, and what really happens then."""

import pytest

from live_server import eventually, of_kind, running_server, text_of


@pytest.fixture(scope="module")
async def shared_server(shared_settings):
    async with running_server(shared_settings, model="demo") as server:
        yield server


def tools_of(frames):
    return [(frame["tool"], frame["success"]) for frame in of_kind(frames, "tool_call")]


async def agent_of(server):
    [agent] = (await server.call("GET", "/agents"))["agents"]
    return agent["id"]


async def test_told_to_come_back_it_does_works_with_a_tool_and_books_its_next_run(server, session, client):
    await client.ask("write Buy milk to notes.txt")
    told = await client.ask("In 2 seconds come back, check notes.txt and book your next run in 1 hour.")
    assert tools_of(told) == [("schedule_recall", True)]
    assert of_kind(told, "recall_update")[0]["action"] == "scheduled"
    woken = await client.until("stream_end")  # nobody asked
    assert of_kind(woken, "recall_update")[0]["action"] == "fired"
    assert tools_of(woken) == [("read_file", True), ("schedule_next_run", True)]
    assert "Buy milk" in text_of(woken)
    run = await server.run(woken[-1]["run_id"])
    assert (run["trigger"], run["status"]) == ("wake", "success")
    next_run = (await server.call("GET", f"/agents/{await agent_of(server)}/next-run"))["next_run"]
    assert next_run["scheduled_by"] == "agent"
    assert next_run["instructions"].endswith("Then book your next run in 1 hour with schedule_next_run.")


async def test_and_the_run_it_booked_works_and_books_the_one_after_it(server, session, client):
    await client.ask("write Buy milk to notes.txt")
    booked = await client.ask("check notes.txt and book your next run in 1 hour")
    assert tools_of(booked) == [("read_file", True), ("schedule_next_run", True)]
    path = f"/agents/{await agent_of(server)}/next-run"
    first = (await server.call("GET", path))["next_run"]
    run = await server.call("POST", f"{path}/run-now")
    ended = await eventually(lambda: _ended(server, run["id"]))
    assert ended["status"] == "success"
    assert ended["session_id"] != session  # a fresh one
    second = (await server.call("GET", path))["next_run"]
    assert second["id"] != first["id"]
    assert second["instructions"] == first["instructions"]
    assert [each["code"] for each in await notices(server)] == []  # the loop goes on


async def test_a_recurring_recall_is_booked_listed_skipped_and_cancelled_in_the_chat(server, session, client):
    booked = await client.ask("every 10 minutes check notes.txt")
    assert tools_of(booked) == [("schedule_recall", True)]
    recall = (await server.call("GET", f"/sessions/{session}/recall"))["recall"]
    assert (recall["call_type"], recall["interval_seconds"]) == ("recurring", 600)
    assert recall["id"] in text_of(await client.ask("list recalls"))
    skipped = await client.ask("skip the next recall")
    assert (tools_of(skipped), of_kind(skipped, "recall_update")[0]["action"]) == ([("manage_recall", True)], "skipped")
    later = (await server.call("GET", f"/sessions/{session}/recall"))["recall"]
    assert later["trigger_at"] > recall["trigger_at"]
    cancelled = await client.ask("cancel the recall")
    assert of_kind(cancelled, "recall_update")[0]["action"] == "cancelled"
    assert (await server.call("GET", f"/sessions/{session}/recall"))["recall"] is None


async def test_every_day_at_nine_is_a_rule_in_the_agents_zone(server, session, client):
    await server.change_agent(timezone="Europe/Berlin")
    await client.ask("every day at 9 read report.md")
    recall = (await server.call("GET", f"/sessions/{session}/recall"))["recall"]
    wake = await server.call("GET", f"/wakes/{recall['id']}")
    assert (wake["cron"], wake["timezone"]) == ("0 9 * * *", "Europe/Berlin")


async def test_notify_lands_in_the_inbox_and_on_the_open_page(server, client):
    async with server.watch_events() as page:
        frames = await client.ask("notify me that the milk is gone")
        assert tools_of(frames) == [("notify", True)]
        assert "1 page is open here" in of_kind(frames, "tool_call")[0]["result"]
        told = (await page.until("notification"))[-1]
    assert told["title"] == "The milk is gone"
    assert [each["title"] for each in await notices(server)] == ["The milk is gone"]


async def notices(server):
    return (await server.call("GET", "/notifications"))["notifications"]


async def _ended(server, run_id):
    run = await server.run(run_id)
    return run if run["finished_at"] else None
