"""What a run finds around it besides its transcript: the servers of its tools, its skills, its AGENTS.md."""

from dataclasses import replace
from datetime import datetime
from functools import partial

from wakeful.domain.agents import skills
from wakeful.runtime.executor import Stop
from wakeful.runtime.waiting import Followed
from wakeful.service.agents.instruction_files import InstructionFiles
from wakeful.service.sessions.briefing import Briefing
from wakeful.tools.registry import Tools


async def look_around(
    briefing: Briefing,
    tools: Tools,
    instructions: InstructionFiles,
    stop: Stop,
    now: datetime,
    looking: "Followed[Briefing]",
) -> Briefing:
    """Start what the agent's tools need, read what it is to know, and return a briefing that says so."""
    looking.explain(partial(tools.catalog.waiting_for_start, briefing.agent))
    with stop.cuts_off():
        notes = await tools.catalog.prepare(briefing.agent)
    for frame in tools.catalog.failed_starts(briefing.agent):
        await looking.say(frame)
    there = await instructions.for_prompt(briefing.agent)
    names = briefing.session_config.get("skills")
    lacking = skills.missing(there.skills, names)
    if lacking:
        notes.append(f"This session was to have skills that are not there: {', '.join(lacking)}.")
    return replace(
        briefing,
        skills=skills.chosen(there.skills, names),
        agents_file=there.agents_file,
        notes=[*notes, *there.left_out],
        # A prompt that tells the time anew before each call could not be cached.
        told_at=now if briefing.session_config.get("cache_breakpoints") else None,
    )
