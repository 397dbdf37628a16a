"""Rules about an agent's settings."""

from collections.abc import Collection, Iterable

from wakeful.domain.bounds import check_bounds
from wakeful.domain.errors import Forbidden, Invalid
from wakeful.domain.types import Agent, User
from wakeful.domain.zones import load_zone

TOOLSETS = ("recall", "scheduler", "next_run", "database", "notify", "files", "web", "shell", "subagents")
FIRST_TOOLSETS = tuple(name for name in TOOLSETS if name != "shell")
NEW_TOOLSETS = ("files", "web")  # self-scheduling and the database are off until someone turns them on
SCHEDULING = frozenset({"recall", "scheduler", "next_run", "notify"})

MOST_NAME = 200
MOST_TEXT = 100_000
MOST_SUBAGENTS = 50


class BadAgent(Invalid):
    code = "bad_agent"


class ShellNotGranted(Forbidden):
    code = "shell_not_granted"

    def __init__(self) -> None:
        super().__init__("Only an owner of this server can give an agent the toolset 'shell'.", field="toolsets")


def check(agent: Agent) -> None:
    """Refuse settings that cannot work."""
    load_zone(agent.timezone)
    check_bounds(agent.bounds)
    if not agent.name.strip() or len(agent.name) > MOST_NAME:
        raise BadAgent(f"An agent's name has 1 to {MOST_NAME} characters.", field="name")
    for field in ("description", "system_prompt"):
        if len(getattr(agent, field)) > MOST_TEXT:
            raise BadAgent(f"{field!r} is longer than {MOST_TEXT:,} characters.", field=field)
    if len(agent.subagents) > MOST_SUBAGENTS:
        raise BadAgent(f"An agent has at most {MOST_SUBAGENTS} subagents.", field="subagents")
    for name in agent.toolsets:
        if name not in TOOLSETS:
            raise BadAgent(f"There is no toolset {name!r}. There are: {', '.join(TOOLSETS)}.", field="toolsets")
    if not 1 <= agent.max_iterations <= 1_000:
        raise BadAgent(f"{agent.max_iterations} model calls in one run are not 1 to 1,000.", field="max_iterations")


def check_grants(user: User, before: Iterable[str], after: Iterable[str]) -> None:
    """Let only an owner grant what can do harm outside of an agent's own rooms."""
    if "shell" in set(after) - set(before) and user.role != "owner":
        raise ShellNotGranted


def shown_toolsets(agent: Agent) -> tuple[str, ...]:
    """Return the toolsets whose tools a model is shown; with self-scheduling off, none that books."""
    hidden = set[str]() if agent.self_scheduling else set(SCHEDULING)
    if not agent.subagents:  # nobody to give a task to
        hidden.add("subagents")
    return tuple(name for name in agent.toolsets if name not in hidden)


def within(tools: Iterable[str], only: Collection[str] | None) -> tuple[str, ...]:
    """Return those of these tools that a run has which is limited to some; None limits nothing."""
    return tuple(tool for tool in tools if only is None or tool in only)
