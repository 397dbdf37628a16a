"""The server killed between the claim of an outgoing message and its result: it is sent again, under the same id."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from crash.crash_harness import IS_LONG
from crash.kill_points import die_before_it_sends, die_when_it_has_sent, reclaim_at_once
from crash.server_process import Conversation, Start
from network.healthchecks import Healthchecks
from network.http_server import HttpServer
from network.webhook_receiver import WebhookReceiver
from openai_server import call, calls, say

pytestmark = [pytest.mark.crash, pytest.mark.both_stores]

SETTINGS = {"WAKEFUL_FETCH_PRIVATE_HOSTS": "127.0.0.1", "WAKEFUL_CHANNEL_TIMEOUT_SECONDS": "10"}
aimed = pytest.mark.parametrize(("aim", "times"), [(die_before_it_sends, 1), (die_when_it_has_sent, 2)])
short_on_sqlite = pytest.mark.parametrize(
    "backend_settings", ["sqlite", "postgres"] if IS_LONG else ["sqlite"], indirect=True
)


async def start_again(talk: Conversation) -> None:
    await talk.served.wait_until_killed()
    await talk.served.start(prepare=reclaim_at_once)


@aimed
async def test_an_event_is_sent_again_under_its_id(talking: Start, aim: Callable[[], None], times: int) -> None:
    async with WebhookReceiver() as receiver, talking(say("Yes."), prepare=aim, **SETTINGS) as (talk, _):
        asked = {"name": "ops", "url": receiver.url(), "events": ["run.finished"]}
        webhook = await talk.served.send("POST", "/webhooks", asked)
        run_id = await talk.say("Are you there?")
        await start_again(talk)

        async def delivered() -> Any:
            [found] = (await talk.served.get(f"/webhooks/{webhook['id']}/deliveries"))["deliveries"]
            return found["status"] == "sent"

        await talk.wait_until(delivered)
        [found] = (await talk.served.get(f"/webhooks/{webhook['id']}/deliveries"))["deliveries"]
        assert found["data"]["run_id"] == run_id
        assert [each.headers["webhook-id"] for each in receiver.taken] == [found["id"]] * times
        assert len({each.body for each in receiver.taken}) == 1


@aimed
async def test_a_notification_is_sent_once_more_and_says_so(
    talking: Start, aim: Callable[[], None], times: int
) -> None:
    told = call("notify", json.dumps({"title": "Red", "body": "Three tests fail."}))
    async with (
        HttpServer() as outside,
        talking(calls(*told), say("Done."), prepare=aim, **SETTINGS) as (talk, _),
    ):
        await talk.change_agent(toolsets=["notify"], self_scheduling=True)
        await talk.served.send("POST", "/channels", {"name": "phone", "url": outside.url()})
        run_id = await talk.say("Tell me.")
        await start_again(talk)
        await talk.wait_for_end(run_id)

        async def arrived() -> bool:
            return len(outside.received) == times

        await talk.wait_until(arrived)
        assert [each["title"] for each in outside.received] == ["Red"] * times
        assert ["Sent once more" in each["message"] for each in outside.received] == [False] * (times - 1) + [True]


@short_on_sqlite
async def test_the_start_of_a_run_is_pinged_before_its_end(talking: Start) -> None:
    async with Healthchecks() as service, talking(say("Yes."), prepare=die_when_it_has_sent, **SETTINGS) as (talk, _):
        booking = {"call_type": "once", "when": "1 hour", "additional_context_message": "Say how it is."}
        wake = (await talk.served.send("POST", f"/sessions/{talk.id}/recall", booking))["recall"]
        await talk.served.send("PATCH", f"/wakes/{wake['id']}", {"ping_url": service.url()})
        run_id = (await talk.served.send("POST", f"/sessions/{talk.id}/recall/run-now", {}))["id"]
        await start_again(talk)
        await talk.wait_for_end(run_id)

        async def has_ended() -> bool:
            return any(ping.path.endswith("/0") for ping in service.pings)

        await talk.wait_until(has_ended)
        paths = [path.rpartition("/")[2] for path, _ in service.take()]
        assert sorted(paths, key=["start", "0"].index) == paths
