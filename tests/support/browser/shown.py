"""Comparisons of what a place of the page shows with what REST says, for a browser in Berlin."""

import re
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from playwright.async_api import Page, expect

from browser.visits import go
from wakeful.core.labels import RUN_NOTES, RUN_STATUSES

BERLIN = ZoneInfo("Europe/Berlin")
IN_BERLIN = {"timezone_id": "Europe/Berlin", "locale": "en-GB"}
UNITS = {"s": 1, "min": 60, "h": 3_600, "d": 86_400}

Read = Callable[..., Awaitable[Any]]  # a GET request: a path and `params`


async def check_agenda(page: Page, read: Read, now: datetime) -> None:
    """Compare every entry of this week; once more if a minute has passed between the answer and the page."""
    if await _entries_not_shown(page, read, now):
        assert await _entries_not_shown(page, read, now) == []
    await check_times(page, now)


async def _entries_not_shown(page: Page, read: Read, now: datetime) -> list[object]:
    here = now.astimezone(BERLIN)
    monday = (here - timedelta(days=here.weekday())).replace(hour=0, minute=0, second=0, microsecond=0)
    span = {"from": monday.isoformat(), "to": (monday + timedelta(days=7)).isoformat()}
    agenda = await read("/agenda", params=span)
    names = {agent["id"]: agent["name"] for agent in (await read("/agents"))["agents"]}
    ran = [
        (clock(run["started_at"] or run["nominal_at"]), run["about"], names[run["agent_id"]], status_of(run))
        for run in agenda["ran"]
        if run["kind"] is not None
    ]
    planned = [(clock(each["at"]), each["about"], names[each["agent_id"]], "") for each in agenda["planned"]]
    await go(page, "/ui/agenda")
    entries = page.locator(".agenda-entry")
    await expect(entries).to_have_count(len(ran) + len(planned))
    shown = [" ".join(text.split()) for text in await entries.all_inner_texts()]
    return [
        (time, about, name, state, shown)
        for time, about, name, state in (*ran, *planned)
        if not any(text.startswith(f"{time} {about}") and name in text and state in text for text in shown)
    ]


async def check_times(page: Page, now: datetime) -> None:
    """Compare every time on the page with its instant: the clock in the viewer's zone, and the distance."""
    read = "all => all.map(each => [each.dateTime, each.textContent])"
    for instant, text in await page.locator("main time").evaluate_all(read):
        for shown in re.findall(r"\b\d\d:\d\d\b", text):
            assert shown == clock(instant), (instant, text)
        if found := re.search(r"\bin ((?:\d+ (?:s|min|h|d) ?)+)|((?:\d+ (?:s|min|h|d) ?)+)ago", text):
            parts = re.findall(r"(\d+) (s|min|h|d)", found[0])
            said = sum(int(number) * UNITS[unit] for number, unit in parts)
            really = abs((moment(instant) - now).total_seconds())
            # Rounded to its smallest unit, and the page counts the time every 15 seconds.
            assert abs(said - really) <= UNITS[parts[-1][1]] / 2 + 20, (instant, text)


def moment(text: str) -> datetime:
    return datetime.fromisoformat(text)


def clock(text: str) -> str:
    return f"{moment(text).astimezone(BERLIN):%H:%M}"


def status_of(run: dict[str, Any]) -> str:
    """Return how the page names the end of a run."""
    return RUN_NOTES.get(run["note"]) or RUN_STATUSES[run["status"]]
