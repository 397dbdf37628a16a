"""What a run finds around it besides its transcript: the servers of its tools, its skills, its AGENTS.md."""

import asyncio
from dataclasses import replace
from datetime import datetime
from pathlib import Path

from wakeful.domain import skills
from wakeful.domain.errors import WakefulError
from wakeful.runtime.executor import Stop
from wakeful.service.briefings import Briefing
from wakeful.tools.registry import Tools
from wakeful.tools.skills import folder_of, read_agents_file, read_all


async def look_around(briefing: Briefing, tools: Tools, workspace: Path, stop: Stop, now: datetime) -> Briefing:
    """Start what the agent's tools need, read what it is to know, and return a briefing that says so."""
    with stop.cuts_off():
        notes = await tools.prepare(briefing.agent)
    there = await asyncio.to_thread(read_all, folder_of(workspace))
    names = briefing.session_config.get("skills")
    lacking = skills.missing(there, names)
    if lacking:
        notes.append(f"This session was to have skills that are not there: {', '.join(lacking)}.")
    try:
        agents_file = await asyncio.to_thread(read_agents_file, workspace)
    except WakefulError as error:
        agents_file = ""
        notes.append(f"AGENTS.md was not read: {error.message}")
    return replace(
        briefing,
        skills=skills.chosen(there, names),
        agents_file=agents_file,
        notes=notes,
        # A prompt that tells the time anew before each call could not be cached.
        told_at=now if briefing.session_config.get("cache_breakpoints") else None,
    )
