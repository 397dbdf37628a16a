"""The tool `switch_profile`: hand the session over to another agent."""

from collections.abc import Callable, Collection

from pydantic import Field

from wakeful.domain.agents.profiles import SWITCH_PROFILE
from wakeful.domain.events import ProfileSwitched
from wakeful.domain.types import Agent
from wakeful.service.sessions.profiles import Profiles
from wakeful.tools.registry import Arguments, Tool, ToolContext, ToolResult


class SwitchProfile(Arguments):
    profile: str = Field(min_length=1, max_length=200, description="The name or id of an agent that your owner listed.")


def profile_tools(service: Profiles, tools_of: Callable[[Agent], Collection[str]]) -> list[Tool]:
    """Return the tool. It belongs to no toolset: agents with a list of profiles have it."""

    async def act(context: ToolContext, asked: SwitchProfile) -> ToolResult:
        own = [name for name in tools_of(context.agent) if context.only is None or name in context.only]
        chosen = await service.switch(context.run, context.agent, asked.profile, own)
        return ToolResult(
            text=f"{chosen.name!r} now continues this session, with its own instructions.",
            metadata={"profile_id": chosen.id, "profile_name": chosen.name},
            frames=(ProfileSwitched(profile_id=chosen.id, profile_name=chosen.name),),
        )

    return [
        Tool(
            name=SWITCH_PROFILE,
            toolset=None,
            description=(
                "Hand this session over to another agent of your user: it continues at once and answers from then on, "
                "with at most the tools you have. Wakes that you have booked stay yours."
            ),
            arguments=SwitchProfile,
            act=act,
            is_repeatable=True,
            is_shown_to=lambda agent: bool(agent.profiles),
        )
    ]
