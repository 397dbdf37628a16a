"""`GET /logs`: the last lines of the log, for owners, without secrets, and following it."""

import asyncio
import logging

import httpx
import pytest

from live_server import TOKEN, running_server
from wakeful.telemetry.recent_logs import MAX_LINES

log = logging.getLogger("wakeful.test")
SECRET = "a-key-of-the-provider"


@pytest.fixture(scope="module")
async def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("logs")
    settings = {"data_dir": folder / "data", "config_dir": folder / "config", "model_api_key": SECRET}
    async with running_server(settings) as server:
        yield server


@pytest.fixture(autouse=True)
def verbose():
    log.setLevel("DEBUG")


async def read(server, **query):
    return await server.call("GET", "/logs", params=query)


async def place(server) -> str:
    return (await read(server))["next"]


async def test_a_line_has_its_level_its_fields_and_its_exception(server):
    after = await place(server)
    try:
        raise ValueError("it broke")
    except ValueError:
        log.exception("work failed", extra={"wake_id": "w1", "count": 3})
    [line] = (await read(server, after=after))["lines"]
    assert (line["level"], line["logger"], line["message"]) == ("error", "wakeful.test", "work failed")
    assert line["fields"] == {"wake_id": "w1", "count": 3}
    assert "ValueError: it broke" in line["exception"]


async def test_secrets_are_not_kept(server):
    after = await place(server)
    log.warning("sent %s", SECRET, extra={"header": f"Bearer {SECRET}", "nested": {"key": [SECRET]}})
    answer = await server.rest.get("/logs", params={"after": after})
    assert "[secret]" in answer.text
    assert SECRET not in answer.text


async def test_lines_are_selected_by_level_and_time(server):
    after = await place(server)
    log.info("small")
    log.error("large")
    assert [each["message"] for each in (await read(server, after=after, level="warning"))["lines"]] == ["large"]
    assert "large" in [each["message"] for each in (await read(server, since="1h"))["lines"]]
    assert (await read(server, since="2999-01-01T00:00Z"))["lines"] == []


async def test_the_last_lines_come_without_a_place_and_the_first_after_one(server):
    after = await place(server)
    for number in range(5):
        log.info("line %d", number)
    assert [each["message"] for each in (await read(server, limit=2))["lines"]] == ["line 3", "line 4"]
    first = await read(server, after=after, limit=2)
    assert [each["message"] for each in first["lines"]] == ["line 0", "line 1"]
    assert [each["message"] for each in (await read(server, after=first["next"]))["lines"]] == [
        "line 2",
        "line 3",
        "line 4",
    ]


async def test_a_request_waits_for_the_next_line(server):
    after = await place(server)
    waiting = asyncio.create_task(read(server, after=after, wait=20))
    await asyncio.sleep(0.3)
    assert not waiting.done()
    assert (await server.call("GET", "/healthz"))["ok"]  # nobody else waits
    await asyncio.to_thread(log.info, "from another thread")
    assert [each["message"] for each in (await waiting)["lines"]] == ["from another thread"]


async def test_only_the_last_lines_are_kept_and_a_slow_reader_hears_of_it(server):
    after = await place(server)
    for number in range(MAX_LINES + 7):
        log.debug("many %d", number)
    page = await read(server, after=after, limit=MAX_LINES)
    assert (len(page["lines"]), page["missed"]) == (MAX_LINES, 7)
    assert page["lines"][0]["message"] == "many 7"


async def test_a_long_line_is_cut_in_the_middle(server):
    after = await place(server)
    log.info("begin %s end", "x" * 100_000)
    [line] = (await read(server, after=after))["lines"]
    assert len(line["message"]) < 5_000
    assert (line["message"][:5], line["message"][-3:]) == ("begin", "end")


@pytest.mark.parametrize("query", [{"since": "yesterday"}, {"since": "2026-01-01"}, {"after": "x"}, {"limit": 10_001}])
async def test_what_cannot_be_understood_is_refused(server, query):
    answer = await server.rest.get("/logs", params=query)
    assert answer.status_code in (400, 422)
    assert answer.json()["error"]["field"] == next(iter(query))


async def test_a_place_of_an_earlier_process_means_all_lines(server):
    log.info("here")
    assert (await read(server, after="0badcafe-99", limit=MAX_LINES))["lines"]


async def test_only_owners_with_the_scope_admin_may_read_it(server):
    small = await server.call("POST", "/tokens", json={"name": "script", "scope": "schedule"})
    user = await server.call("POST", "/users", json={"name": "Ada"})
    other = await server.call("POST", "/tokens", json={"name": "t", "scope": "admin", "user_id": user["id"]})
    async with httpx.AsyncClient(base_url=server.address) as client:
        for made in (small, other):
            answer = await client.get("/logs", headers={"Authorization": f"Bearer {made['secret']}"})
            assert answer.status_code == 403


async def test_a_stop_does_not_wait_for_a_follower(tmp_path):
    async with httpx.AsyncClient(timeout=30, headers={"Authorization": f"Bearer {TOKEN}"}) as client:
        async with running_server({"data_dir": tmp_path / "data", "config_dir": tmp_path / "config"}) as server:
            query = {"level": "critical", "wait": 20}
            waiting = asyncio.create_task(client.get(f"{server.address}/logs", params=query))
            await asyncio.sleep(0.3)
            began = asyncio.get_running_loop().time()
        assert asyncio.get_running_loop().time() - began < 3  # uvicorn would wait 5 s
        assert (await waiting).json()["lines"] == []
