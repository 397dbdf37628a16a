"""The names under which programs find agents as models."""

from collections import Counter
from collections.abc import Sequence

from wakeful.domain.errors import NotFound
from wakeful.domain.types import Agent

PREFIX = "agent:"
_MAX_NAMED = 10


class NoSuchModel(NotFound):
    code = "model_not_found"

    def __init__(self, model: str, agents: Sequence[Agent]) -> None:
        names = [model_of(agent, agents) for agent in agents]
        known = ", ".join(map(repr, names[:_MAX_NAMED])) + (", …" if len(names) > _MAX_NAMED else "")
        same = [f"{PREFIX}{agent.id}" for agent in agents if agent.name == model]
        if same:
            text = f"{len(same)} of your agents have the name {model!r}. Ask for one of {', '.join(same)}."
        elif names:
            text = f"You have no agent {model[:200]!r}. A model is one of your agents: {known}."
        else:
            text = "You have no agent yet, and a model is one of your agents. Create one with POST /agents."
        super().__init__(text, field="model")


def model_of(agent: Agent, agents: Sequence[Agent]) -> str:
    """Return the name of an agent as a model: its own, unless another agent of its user has that too."""
    is_unique = Counter(each.name for each in agents)[agent.name] == 1
    return agent.name if is_unique and not agent.name.startswith(PREFIX) else f"{PREFIX}{agent.id}"


def find_agent(model: str, agents: Sequence[Agent]) -> Agent:
    """Return the agent that a program asks for; its id always works."""
    found = [agent for agent in agents if model in (f"{PREFIX}{agent.id}", model_of(agent, agents))]
    if not found:
        raise NoSuchModel(model, agents)
    return found[0]
