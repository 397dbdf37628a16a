"""Hand a session over to another agent: switching the profile, in Navi's terms."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from wakeful.domain.errors import Forbidden
from wakeful.domain.types import Agent, Message, Run, Session

SWITCH_PROFILE = "switch_profile"  # the tool


class NotListed(Forbidden):
    code = "profile_not_listed"

    def __init__(self, asked: str, listed: Sequence[Agent]) -> None:
        there_are = f"You may switch to: {', '.join(repr(agent.name) for agent in listed)}." if listed else ""
        super().__init__(f"{asked[:100]!r} is not one of the profiles that your owner listed. {there_are}".strip())


def acting_agent(run: Run, messages: Sequence[Message]) -> str:
    """Return the id of the agent that executes a run now: its own, or the last one it was handed over to."""
    for message in reversed(messages):
        data = message.data or {}
        is_own = message.run_id == run.id and message.role == "tool"
        if is_own and data.get("tool") == SWITCH_PROFILE and data.get("success"):
            return data["metadata"]["profile_id"]
    return run.agent_id


def find(asked: str, listed: Sequence[Agent]) -> Agent:
    """Return the listed agent with this id or name."""
    wanted = asked.strip().casefold()
    for agent in listed:
        if asked == agent.id or wanted == agent.name.casefold():
            return agent
    raise NotListed(asked, listed)


def limit(config: Mapping[str, Any], session: Session) -> Mapping[str, Any]:
    """Return a session's configuration limited to the tools of the agent that handed it over."""
    if session.tool_limit is None:
        return config
    return {**config, "tool_ids": narrow(session.tool_limit, config.get("tool_ids"))}


def narrow(tools: Collection[str], only: Collection[str] | None) -> list[str]:
    return [name for name in tools if only is None or name in only]
