"""The rules of a time zone change between two starts of the server, or while it runs."""

import asyncio
import zoneinfo
from datetime import UTC, datetime
from importlib import resources
from pathlib import Path

import pytest

from harness import DAY, HOUR, NOON, Harness, run_tidy_jobs
from wakeful.core import zones
from wakeful.wakes.zone_rules import ZoneRules

pytestmark = pytest.mark.both_stores

NINE = datetime(2026, 3, 3, 8, tzinfo=UTC)  # in Berlin, the day after NOON; an hour earlier than in London
LONDON = NINE + HOUR


def compiled(zone: str) -> bytes:
    """Return the rules of a zone as its file has them."""
    return resources.files("tzdata").joinpath("zoneinfo", *zone.split("/")).read_bytes()


class ZoneData:
    """A folder of zone files that is searched first."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def update(self, version: str, rules: bytes, city: str = "Berlin") -> None:
        """Replace the files, as an update of the system does."""
        (self._folder / "Europe").mkdir(exist_ok=True)
        (self._folder / "Europe" / city).write_bytes(rules)
        (self._folder / "tzdata.zi").write_text(f"# version {version}\n")


@pytest.fixture
def data(tmp_path):
    folder = tmp_path / "zoneinfo"
    folder.mkdir()
    before = zoneinfo.TZPATH
    zoneinfo.reset_tzpath([str(folder), *before])
    data = ZoneData(folder)
    data.update("2026a", compiled("Europe/Berlin"))
    zones.reload()
    yield data
    zoneinfo.reset_tzpath(before)
    zones.reload()


async def restart(harness, *, at=None):
    """Start a new process on the same store."""
    zones.reload()
    harness.executor.ran.clear()
    if at is not None:
        harness.clock.set(at)
    harness.node = harness.another_node()
    return harness.node.opened()


async def start(harness):
    """Do what a start does before anything fires."""
    return await harness.node.engine.zone_rules.follow_changes()


async def test_a_cron_wake_keeps_its_wall_clock_time_and_why_says_so(backend_settings, data):
    harness = Harness(backend_settings)
    async with harness.node.opened():
        await harness.settle_in()
        wake = await harness.book(call_type="recurring", cron="0 9 * * *")
        other = await harness.book(call_type="recurring", cron="0 9 * * *", timezone="Europe/Paris")
        every = await harness.book(call_type="recurring", every=DAY, at=NINE)
        assert await start(harness) == []
    data.update("2026b", compiled("Europe/London"))
    async with await restart(harness):
        assert [each.id for each in await start(harness)] == [wake.id]
        assert (await harness.wake(wake)).attempt_at == LONDON
        assert [(await harness.wake(each)).nominal_at for each in (other, every)] == [NINE, NINE]
        assert [step.text for step in await harness.why(wake)][1:] == [
            "Moved from 2026-03-03T08:00:00Z to 2026-03-03T09:00:00Z: the rules of the time zone Europe/Berlin have "
            "changed."
        ]
        await harness.live_until(LONDON + 20 * HOUR)
        assert [run.nominal_at for run in await harness.runs_of(wake)] == [LONDON]
        assert await start(harness) == []
    async with await restart(harness):
        assert await start(harness) == []


async def test_a_time_that_has_passed_by_the_new_rules_runs_once_that_day(backend_settings, data):
    data.update("2026a", compiled("Europe/London"))
    zones.reload()
    harness = Harness(backend_settings)
    async with harness.node.opened():
        await harness.settle_in()
        wake = await harness.book(call_type="recurring", cron="0 9 * * *")
        await start(harness)
    data.update("2026b", compiled("Europe/Berlin"))
    async with await restart(harness, at=NINE + HOUR / 2):
        await start(harness)
        await harness.live_until(NINE + 20 * HOUR)
        assert [(run.nominal_at, run.status) for run in await harness.runs_of(wake)] == [(NINE, "success")]
        assert (await harness.wake(wake)).nominal_at == NINE + DAY


async def test_data_of_an_earlier_version_is_only_saved_by_its_first_start(backend_settings, data):
    harness = Harness(backend_settings)
    async with harness.node.opened():
        await harness.settle_in()
        wake = await harness.book(call_type="recurring", cron="0 9 * * *")
        once = await harness.book(at=NINE, wall_clock="2026-03-03T09:00:00")
    async with await restart(harness):
        assert await start(harness) == []  # in a process that has planned nothing yet
    data.update("2026b", compiled("Europe/London"))
    async with await restart(harness):
        assert {each.id for each in await start(harness)} == {wake.id, once.id}
        assert (await harness.wake(once)).nominal_at == LONDON


async def test_a_zone_first_used_just_before_a_stop_is_saved_by_the_next_start(backend_settings, data):
    harness = Harness(backend_settings)
    async with harness.node.opened():
        await harness.settle_in()
        await harness.book(call_type="recurring", cron="0 9 * * *")
        await start(harness)
        wake = await harness.book(call_type="recurring", cron="0 9 * * *", timezone="Europe/Oslo")
    async with await restart(harness):
        await start(harness)
    data.update("2026b", compiled("Europe/London"), "Oslo")
    async with await restart(harness):
        assert [each.id for each in await start(harness)] == [wake.id]


async def test_an_update_is_seen_by_a_server_that_runs(backend_settings, data):
    harness = Harness(backend_settings)
    async with harness.node.opened():
        await harness.settle_in()
        await start(harness)
        wake = await harness.book(call_type="recurring", cron="0 9 * * *")
        await run_tidy_jobs(harness.node)
        data.update("2026b", compiled("Europe/London"))
        await run_tidy_jobs(harness.node)
        assert (await harness.wake(wake)).nominal_at == LONDON
        await harness.turn_at(LONDON)
        assert (await harness.wake(wake)).nominal_at == LONDON + DAY


async def test_nodes_that_start_together_move_a_wake_once(backend_settings, data):
    harness = Harness(backend_settings)
    async with harness.node.opened():
        await harness.settle_in()
        wake = await harness.book(call_type="recurring", cron="0 9 * * *")
        await start(harness)
    data.update("2026b", compiled("Europe/London"))
    async with await restart(harness):
        nodes = [ZoneRules(harness.node.store, harness.clock) for _ in range(2)]
        moved = await asyncio.gather(*[each.follow_changes() for each in nodes])
        assert sorted(map(len, moved)) == [0, 1]
        assert (await harness.wake(wake)).nominal_at == LONDON


async def test_a_start_looks_before_anything_fires(backend_settings, data):
    harness = Harness(backend_settings, now=NOON)
    async with harness.node.opened():
        await harness.settle_in()
        wake = await harness.book(call_type="recurring", cron="0 9 * * *")
        await start(harness)
    data.update("2026b", compiled("Europe/London"))
    async with await restart(harness, at=NINE):
        await harness.node.engine.start()
        await harness.node.engine.stop()
        assert (await harness.runs_of(wake), (await harness.wake(wake)).nominal_at) == ([], LONDON)
