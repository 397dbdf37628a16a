"""Pings of wakes: start, ok or failed, in order, and never in the way of the run."""

import pytest

from harness import HOUR, Harness, doing, send_due
from network.healthchecks import Healthchecks
from wakeful.core.addresses import BadPingAddress
from wakeful.core.errors import Conflict
from wakeful.core.outgoing import PrivateAddress
from wakeful.store.wakes import NoSuchWake

pytestmark = pytest.mark.both_stores

ON_SQLITE = pytest.mark.parametrize("backend_settings", ["sqlite"], indirect=True)  # where the store plays no part


@pytest.fixture
async def service():
    async with Healthchecks() as service:
        yield service


@pytest.fixture
async def harness(backend_settings):
    harness = Harness(backend_settings | {"fetch_private_hosts": ["127.0.0.1"]})
    async with harness.node.opened():
        await harness.settle_in()
        yield harness


@pytest.fixture
def pings(harness):
    return harness.node.services.pings


def outcomes(caplog) -> list[str]:
    return [vars(record)["outcome"] for record in caplog.records if record.message == "ping of a wake not sent"]


async def break_down(_run: object) -> None:
    raise Conflict("This is what a model or a person wrote, and stays here.")


async def test_runs_of_a_wake_are_reported_with_their_id_and_a_code(harness, pings, service):
    wake = await harness.book(call_type="recurring")
    after = await pings.set_address(wake.id, harness.user.id, service.url())
    assert after.ping_to == f"http://127.0.0.1:{service.port}/****"
    await harness.turn_at(wake.nominal_at)
    await send_due(harness.node)
    [start, end] = service.pings
    assert (start.rid, end.rid) == (harness.executor.ran[0].run.id, harness.executor.ran[0].run.id)
    assert service.take() == [("secret-check/start", ""), ("secret-check/0", "")]
    harness.executor.default = doing(break_down)
    await harness.turn_at(wake.nominal_at + HOUR)
    await send_due(harness.node)
    assert service.take() == [("secret-check/start", ""), ("secret-check/1", "conflict")]
    await pings.set_address(wake.id, harness.user.id, None)
    await harness.turn_at(wake.nominal_at + 2 * HOUR)
    await send_due(harness.node)
    assert (len(harness.executor.ran), service.take()) == (3, [])


@ON_SQLITE
async def test_a_redirect_is_not_followed_and_the_address_is_not_logged(harness, pings, service, caplog):
    service.status, service.location = 302, service.url("elsewhere")
    wake = await harness.book()
    await pings.set_address(wake.id, harness.user.id, service.url())
    await harness.turn_at(wake.nominal_at)
    await send_due(harness.node)
    assert [path for path, _ in service.take()] == ["secret-check/start", "secret-check/0"]
    assert outcomes(caplog) == ["redirect", "redirect"]
    assert "secret-check" not in caplog.text


@ON_SQLITE
async def test_a_service_that_does_not_answer_takes_nothing_from_the_run(harness, pings, service, caplog):
    service.is_silent, harness.node.services.outbox.kinds["ping"].seconds = True, 1.0
    wake = await harness.book()
    await pings.set_address(wake.id, harness.user.id, service.url())
    await harness.turn_at(wake.nominal_at)
    assert [run.status for run in await harness.runs_of(wake)] == ["success"]
    await send_due(harness.node)
    assert outcomes(caplog)[-1] == "timed_out"


@ON_SQLITE
async def test_a_connection_to_a_private_address_is_refused_where_it_is_made(harness, pings, caplog):
    """A name may have resolved to a public address when it was saved."""
    wake = await harness.book()
    await harness.node.store.write(
        lambda tx: tx.wakes.set_ping(wake.id, "http://10.0.0.1/x", "http://10.0.0.1/****", harness.clock.now())
    )
    await harness.turn_at(wake.nominal_at)
    await send_due(harness.node)
    assert outcomes(caplog) == ["private_address", "private_address"]


@ON_SQLITE
async def test_addresses_are_checked_when_they_are_saved(harness, pings):
    wake = await harness.book()
    for url in ("ftp://x/y", "https://", "https://me:secret@x/", "https://x/#y", "https://x/a b", "https://[::1", "x"):
        with pytest.raises(BadPingAddress) as refused:
            await pings.set_address(wake.id, harness.user.id, url)
        assert "secret" not in refused.value.message
    for url in ("http://10.0.0.1/x", "http://169.254.169.254/", "http://[::1]/x"):
        with pytest.raises(PrivateAddress):
            await pings.set_address(wake.id, harness.user.id, url)
    with pytest.raises(NoSuchWake):
        await pings.set_address(wake.id, "another user", "http://127.0.0.1/x")


@ON_SQLITE
async def test_a_run_that_is_resumed_is_started_once_and_one_that_is_given_up_has_failed(harness, pings, service):
    wake = await harness.book()
    await pings.set_address(wake.id, harness.user.id, service.url())
    firing = harness.node.engine.firing
    harness.executor.default = harness.gate()
    await harness.turn_at(wake.nominal_at)
    for _ in range(3):  # as often as a run may be interrupted
        await send_due(harness.node)
        await harness.crash()
        await firing.recover(every_other_owner=True)
        await harness.work()
    await send_due(harness.node)
    assert service.take() == [("secret-check/start", ""), ("secret-check/1", "attempts_used_up")]
