"""Moves wakes to the instants that their wall-clock times mean, when the rules of a time zone have changed."""

import logging
import zoneinfo
from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime, timedelta
from importlib import resources
from pathlib import Path

from wakeful.core.clock import Clock
from wakeful.core.types import Wake
from wakeful.core.zones import UnknownZone, load_zone, loaded_zones, reload
from wakeful.store.base import Job
from wakeful.store.store import Store, Tx
from wakeful.timing import replan
from wakeful.timing.recurrence import DAY

log = logging.getLogger(__name__)


class ZoneRules:
    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._version: str | None = None  # None: this process has not looked yet
        self._known: set[str] = set()  # zones whose rules are saved as this process sees them

    def jobs(self) -> Iterator[Job]:
        yield Job(name="zone-rules", every=timedelta(minutes=1), run=self.follow_changes)

    async def follow_changes(self) -> list[Wake]:
        """Compare the rules of all zones at a start and after an update of the time zone data, else of newly used ones.

        Return the wakes that were moved.
        """
        version, zones = _data_version(), loaded_zones() - self._known
        if version != self._version:
            reload()
            self._known.clear()
            zones |= await self._store.read(_zones_in_use, is_long=True)
        now = self._clock.now()
        moved: list[Wake] = []
        for zone in sorted(zones):
            # One transaction: with a part of its wakes moved, a second look would move these again.
            moved += await self._store.write(lambda tx, zone=zone: _move_wakes(tx, zone, now), is_long=True)
            self._known.add(zone)
        if moved:
            log.warning("wakes rescheduled: the rules of their time zones have changed", extra={"wakes": len(moved)})
        self._version = version
        return moved


def _data_version() -> str:
    """Return the first line of the time zone data, which names its version; empty if it has none."""
    packaged = str(resources.files("tzdata").joinpath("zoneinfo"))
    for folder in (*zoneinfo.TZPATH, packaged):  # in the order in which zones are looked for
        with suppress(OSError), Path(folder, "tzdata.zi").open(encoding="utf-8") as data:
            return data.readline()
    return ""


async def _zones_in_use(tx: Tx) -> set[str]:
    # Not all are saved: at the first start none is, and a process may end before it has looked at a new one.
    return {*await tx.wakes.zone_rules(), *await tx.wakes.zones()}


async def _move_wakes(tx: Tx, zone: str, now: datetime) -> list[Wake]:
    """Move the wakes of a zone if its rules have changed, and save the rules."""
    was = await tx.wakes.lock_zone_rules(zone)
    try:
        found = load_zone(zone)
    except UnknownZone:  # the data no longer has it; its wakes say so when they are due
        return []
    moved: list[Wake] = []
    if was is not None and was != replan.offsets_of(found, was[0][0].year):
        for before in await tx.wakes.by_clocks_of(zone):
            fired = await tx.runs.planned_after(before.id, before.nominal_at - DAY)
            after = replan.replan_after_zone_change(before, was, fired, now)
            if after != before:
                await tx.wakes.move([(after, "rescheduled")])
                await tx.notices.record([replan.explain_zone_change(before, after, now)])
                moved.append(after)
    rules = replan.offsets_of(found, now.year - 1)
    if was != rules:
        await tx.wakes.save_zone_rules(zone, rules)
    return moved
