"""A traced run whose process is killed: the next attempt, and what the first one booked, link to it."""

import json

import pytest

from crash.server_process import Start
from openai_server import call, calls, hang, say
from otlp_server import OtlpServer

pytestmark = pytest.mark.crash


async def test_the_trace_goes_on_after_a_kill(talking: Start, tmp_path) -> None:
    booking = json.dumps({"call_type": "immediate", "additional_context_message": "Read a.txt with read_file."})
    with OtlpServer() as collector:
        (tmp_path / "config").mkdir(exist_ok=True)
        (tmp_path / "config" / "wakeful.toml").write_text(f'otel_endpoint = "{collector.origin}"\n')
        script = calls(*call("schedule_recall", booking)), hang, say("Booked."), say("Read.")
        async with talking(*script) as (talk, provider):
            run_id = await talk.say("Book it.")

            async def is_asked_again() -> bool:
                return len(provider.requests) == 2

            await talk.wait_until(is_asked_again)
            # The call has ended; its span is sent within seconds. That of the attempt is lost with the process.
            [booked] = [
                span
                for span in await collector.has(lambda spans: any("schedule_recall" in span.name for span in spans))
                if "schedule_recall" in span.name
            ]
            await talk.served.kill()
            await talk.served.start()
            assert (await talk.wait_for_end(run_id))["status"] == "success"
            spans = await collector.has(lambda found: sum(not span.parent_id for span in found) == 2)
    again, woken = sorted(
        (span for span in spans if not span.parent_id), key=lambda span: span.links[0] == booked.place
    )
    assert again.attributes["wakeful.run.id"] == run_id
    assert again.links == ((booked.trace_id, booked.parent_id),)
    assert again.trace_id != booked.trace_id
    assert woken.links == (booked.place,)
