"""The dead man's switch: a ping a minute while wakes are fired, `/fail` with codes if not, and once for all nodes."""

from datetime import timedelta

import pytest

from harness import SECOND, Harness
from network.healthchecks import Healthchecks
from wakeful.config.settings import Settings, secrets_of, trace_settings

ON_SQLITE = pytest.mark.parametrize("backend_settings", ["sqlite"], indirect=True)
ON_POSTGRES = pytest.mark.parametrize("backend_settings", ["postgres"], indirect=True)


@pytest.fixture
async def service():
    async with Healthchecks() as service:
        yield service


@pytest.fixture
async def harness(backend_settings, service):
    """A node whose own network has the service: the author of the settings file may name it without allowing it."""
    harness = Harness(backend_settings | {"heartbeat_url": service.url("server")})
    async with harness.node.opened():
        await harness.settle_in()
        yield harness


async def look(harness, node=None, after: timedelta = 15 * SECOND) -> None:
    """Let time pass in which scheduler and runner turn, then do what a node does every 15 seconds."""
    node = node or harness.node
    harness.clock.advance(after)
    await node.engine.scheduler.turn()
    await node.engine.runner.turn()
    await node.engine.ping_heartbeat()


@ON_SQLITE
async def test_it_pings_once_a_minute_while_wakes_are_fired(harness, service):
    await look(harness)
    assert service.take() == [("server", "")]
    for _ in range(3):
        await look(harness)
    assert service.take() == []
    await look(harness)
    assert service.take() == [("server", "")]


@ON_SQLITE
async def test_a_scheduler_that_stalls_is_reported_with_its_code_alone(harness, service):
    await look(harness)
    service.take()
    for _ in range(10):  # nothing turns any more
        harness.clock.advance(15 * SECOND)
        await harness.node.engine.ping_heartbeat()
    assert service.take()[-1] == ("server/fail", "scheduler_stalled runner_stalled")
    await look(harness)
    assert service.take() == [("server", "")]  # at once, not a minute later


@ON_SQLITE
async def test_a_service_that_is_slow_or_down_is_logged_once(harness, service, caplog):
    service.status = 404
    for _ in range(9):
        await look(harness)
    assert len(service.take()) == 3
    assert [vars(each)["outcome"] for each in caplog.records if each.message == "heartbeat ping"] == ["refused"]
    assert "server" not in caplog.text.replace("heartbeat.py", "")


@ON_POSTGRES
async def test_several_nodes_ping_once_and_one_takes_over_when_another_stops(harness, service):
    other = harness.another_node()
    async with other.opened():
        for _ in range(8):  # two minutes
            await look(harness, after=7 * SECOND)
            await look(harness, other, after=8 * SECOND)
        assert service.take() == [("server", ""), ("server", "")]
    for _ in range(4):
        await look(harness)
    assert service.take() == [("server", "")]


@ON_POSTGRES
async def test_a_node_that_is_not_ready_leaves_the_ping_to_those_that_are(harness, service):
    other = harness.another_node()
    async with other.opened():
        await look(harness)
        service.take()
        for _ in range(16):  # four minutes
            harness.clock.advance(8 * SECOND)
            await other.engine.ping_heartbeat()  # its scheduler does not turn
            await look(harness, after=7 * SECOND)
        assert {path for path, _ in service.take()} == {"server"}
        for _ in range(16):
            harness.clock.advance(15 * SECOND)
            await other.engine.ping_heartbeat()
        assert service.take()[0] == ("server/fail", "scheduler_stalled runner_stalled")


def test_the_address_is_hidden(tmp_path):
    secret = "0f7e2a44-6d0f-4f0e-9c6b-4f0e9c6b0f7e"
    settings = Settings(config_dir=tmp_path, data_dir=tmp_path, heartbeat_url=f"https://hc-ping.com/{secret}")
    assert secret not in repr(settings)
    assert secret not in str(trace_settings(settings, {}))
    assert secret in secrets_of(settings)  # so that logs redact it, with or without its host
