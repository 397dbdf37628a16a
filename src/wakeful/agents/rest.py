"""Routes for agents and the files that instruct them."""

from dataclasses import replace
from datetime import time, timedelta
from typing import Annotated, Any

from fastapi import APIRouter, Path
from pydantic import AwareDatetime, BeforeValidator, Field

from wakeful.agents import rules
from wakeful.agents.instruction_files import InstructionFiles
from wakeful.agents.rules import MAX_DATABASE_MB, MAX_MODELS, MAX_SUBAGENTS
from wakeful.agents.service import AgentService
from wakeful.core.budget import Budget
from wakeful.core.labels import hidden_toolsets
from wakeful.core.types import Agent, Bounds, Budgets, ScheduleMode, ThinkingLevel
from wakeful.homes.instructions import MAX_INSTRUCTION_FILE
from wakeful.http.auth import Admin, Reader
from wakeful.http.routes import DoorRoute
from wakeful.http.services import Need, ServicesDep
from wakeful.http.shapes import Deleted, Id, Label, PathId, RequestBody, Shape, Text, ToDollars, Zone, shape_of
from wakeful.models.rest import ModelTrialShape
from wakeful.models.service import ModelService
from wakeful.timing.bounds import PRESETS, is_customised

router = APIRouter(route_class=DoorRoute, tags=["agents"])

Toolset = Annotated[str, Field(json_schema_extra={"enum": [*rules.TOOLSETS]})]
Toolsets = Annotated[list[Toolset], Field(max_length=20)]
McpNames = Annotated[list[Annotated[str, Field(pattern=r"^[a-z][a-z0-9-]{0,31}$")]], Field(max_length=50)]
ToolNames = Annotated[list[Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{1,64}\*?$")]], Field(max_length=200)]
AgentIds = Annotated[list[Id], Field(max_length=50)]
Money = Annotated[float, Field(ge=0, le=1_000_000)]  # dollars
Cost = Annotated[Money, ToDollars]
Count = Annotated[int, Field(ge=0, le=10**15)]
Seconds = Annotated[int, Field(ge=1, le=365 * 86_400)]
Clock = Annotated[str, Field(pattern=r"^([01]\d|2[0-3]):[0-5]\d$")]
Model = Annotated[str, Field(min_length=1, max_length=200, pattern=r"^\S+$")]


def _to_minutes(at: time | None) -> str | None:
    return None if at is None else at.isoformat("minutes")


class BudgetsShape(Shape):
    """Limits of what an agent may spend; null: no limit."""

    run_tokens: Count | None = None
    run_cost: Cost | None = Field(None, validation_alias="run_cost_micros")
    day_tokens: Count | None = None
    day_cost: Cost | None = Field(None, validation_alias="day_cost_micros")


class BoundsShape(shape_of(Bounds, max_horizon="max_horizon_seconds", min_interval="min_interval_seconds")):
    """Limits of the next runs that an agent books itself."""

    is_customised: bool
    quiet_from: Annotated[str | None, BeforeValidator(_to_minutes)]
    quiet_to: Annotated[str | None, BeforeValidator(_to_minutes)]
    days: Annotated[list[int], BeforeValidator(sorted)]


class AgentShape(
    shape_of(
        Agent,
        without=("user_id", "user_timezone", "offers_zone"),
        run_limit="run_limit_seconds",
        bounds="schedule",
    )
):
    """An agent and its settings."""

    budgets: BudgetsShape
    timezone: str | None = Field(description="Its own IANA zone. Null: its user's.")
    zone: str = Field(description="The zone of its quiet hours, days and today: its own, else its user's, else UTC.")
    is_zone_known: bool = Field(
        description="False: neither it nor its user has a zone, and wall-clock times are refused."
    )
    offered_timezone: str | None = Field(
        description="Its user's zone, if the user should be asked once whether the agent uses it instead of its own. "
        "Setting `timezone`, to null or to the agent's zone, answers the question."
    )
    schedule: BoundsShape = Field(validation_alias="bounds")
    hidden_toolsets: list[str] = Field(
        description="Those of `toolsets` that its model is not offered, because self-scheduling is off."
    )


class SpentShape(Shape):
    """Usage since a time, including planning and subagents."""

    since: AwareDatetime
    runs: int
    model_calls: int
    tokens: int
    cost: Annotated[float, ToDollars] = Field(validation_alias="cost_micros")
    unpriced_runs: int = Field(description="Runs of models without a known price, whose cost is not in `cost`.")


class AgentUsage(Shape):
    """Usage of an agent today, in its time zone, and its limits; without a limit, what is left is null."""

    today: SpentShape
    budgets: BudgetsShape
    tokens_left: int | None
    cost_left: Annotated[float, ToDollars] | None


class ToolShape(Shape):
    """A tool that an agent can have; one without a toolset depends on other settings of the agent."""

    name: str
    toolset: str | None


class ToolList(Shape):
    tools: list[ToolShape]


class AgentList(Shape):
    agents: list[AgentShape]


class BudgetsChange(RequestBody):
    """Fields that are left out stay unchanged; null removes a limit."""

    run_tokens: Count | None = Field(None, description="Tokens that one run may use.")
    run_cost: Money | None = Field(None, description="Dollars that one run may cost.")
    day_tokens: Count | None = Field(None, description="Tokens that it may use in a day.")
    day_cost: Money | None = Field(None, description="Dollars that it may cost in a day.")


class ScheduleChange(RequestBody):
    """A mode sets all bounds; other fields in the same request are applied after it."""

    mode: ScheduleMode | None = Field(
        None, description="How freely it may book its own next run; a mode sets all limits below."
    )
    max_horizon_seconds: Seconds | None = Field(None, description="How far ahead it may book its next run.")
    min_interval_seconds: Annotated[int, Field(ge=0, le=365 * 86_400)] | None = Field(
        None, description="How long it waits at least between two runs that it booked itself."
    )
    daily_cap: Annotated[int, Field(ge=0, le=100_000)] | None = Field(
        None, description="How many runs that it booked itself it may have in a day."
    )
    quiet_from: Clock | None = Field(None, description="When its quiet hours begin, HH:MM in its time zone.")
    quiet_to: Clock | None = Field(None, description="When its quiet hours end, HH:MM in its time zone.")
    days: Annotated[list[Annotated[int, Field(ge=0, le=6)]], Field(max_length=7)] | None = Field(
        None, description="Days on which it may run; Monday is 0."
    )


class AgentChange(RequestBody):
    """Fields that are left out stay unchanged."""

    name: Label | None = Field(None, description="Its name.")
    description: Text | None = Field(None, description="What it is for.")
    model: Model | None = Field(None, description="Its model; null: the server's own.")
    allowed_models: Annotated[list[Model], Field(max_length=MAX_MODELS)] | None = Field(
        None, description="Models that its schedules may ask for besides its own. Only an owner may set them."
    )
    system_prompt: Text | None = Field(None, description="Its system prompt.")
    toolsets: Toolsets | None = Field(None, description="Its toolsets.")
    mcp_servers: McpNames | None = Field(None, description="MCP servers whose tools it has.")
    ask_before: ToolNames | None = Field(
        None, description="Tools that it may call only after a person has approved the call; a name may end in *."
    )
    profiles: AgentIds | None = Field(None, description="Agents that it may hand a session over to.")
    may_write_skills: bool | None = Field(None, description="Whether it may write its own skills.")
    subagents: Annotated[list[Id], Field(max_length=MAX_SUBAGENTS)] | None = Field(
        None, description="Agents that it may give tasks to."
    )
    planning: bool | None = Field(None, description="Whether it makes a plan before it answers.")
    thinking_level: ThinkingLevel | None = Field(
        None, description="How much the model reasons; null: the provider's default."
    )
    max_iterations: Annotated[int, Field(ge=1, le=1_000)] | None = Field(
        None, description="How many model calls a run may make."
    )
    run_limit_seconds: Annotated[int, Field(ge=1, le=86_400)] | None = Field(
        None, description="How long a run may take."
    )
    budgets: BudgetsChange | None = None
    database_mb: Annotated[int, Field(ge=1, le=MAX_DATABASE_MB)] | None = Field(
        None, description="How much its own database may hold, in MB; null: the server's default."
    )
    timezone: Zone | None = Field(None, description="Its IANA time zone; null: its user's.")
    self_scheduling: bool | None = Field(
        None, description="Whether it may book its own wakes. Switching it off cancels those that it booked."
    )
    schedule: ScheduleChange | None = None


class NewAgent(AgentChange):
    name: Label  # pyright: ignore[reportIncompatibleVariableOverride, reportGeneralTypeIssues]


@router.get("/agents")
async def list_agents(caller: Reader, agents: Need[AgentService]) -> AgentList:
    """List the caller's agents."""
    return AgentList(agents=[_to_body(agent) for agent in await agents.of_user(caller.user.id)])


@router.post("/agents", status_code=201)
async def make_agent(caller: Admin, agents: Need[AgentService], asked: NewAgent) -> AgentShape:
    """Create an agent. Self-scheduling and the database are off by default."""
    changes = _changes(asked, PRESETS["reactive"], Budgets())
    changes.pop("name")
    return _to_body(await agents.make(caller.user, asked.name, changes))


@router.get("/agents/{agent_id}")
async def get_agent(caller: Reader, agents: Need[AgentService], agent_id: PathId) -> AgentShape:
    """Show an agent."""
    return _to_body(await agents.get(agent_id, caller.user.id))


@router.get("/agents/{agent_id}/usage")
async def get_agent_usage(caller: Reader, agents: Need[AgentService], agent_id: PathId) -> AgentUsage:
    """Show an agent's usage today, and its limits."""
    used = await agents.usage(agent_id, caller.user.id)
    budget = Budget(used.agent.budgets, today=used.spent)
    return AgentUsage(
        today=SpentShape.from_fields(budget.today, since=used.since),
        budgets=BudgetsShape.model_validate(budget.limits),
        tokens_left=budget.tokens_left,
        cost_left=budget.cost_left,
    )


@router.post("/agents/{agent_id}/test-model")
async def test_agent_model(
    caller: Admin, agents: Need[AgentService], models: Need[ModelService], agent_id: PathId
) -> ModelTrialShape:
    """Send a test request to an agent's model, with one tool. It does not count against any budget.

    Returns within about 20 seconds; the outcome `waiting` means that the test goes on, and that the same request
    returns its result.
    """
    agent = await agents.get(agent_id, caller.user.id)
    return ModelTrialShape.model_validate(await models.test_of_agent(agent.model))


@router.get("/tools")
async def list_tools(_caller: Reader, services: ServicesDep) -> ToolList:
    """List the server's own tools, for settings that name tools."""
    return ToolList(tools=[ToolShape(name=name, toolset=toolset) for name, toolset in services.toolset_of().items()])


@router.patch("/agents/{agent_id}")
async def change_agent(caller: Admin, agents: Need[AgentService], agent_id: PathId, asked: AgentChange) -> AgentShape:
    """Change settings of an agent."""
    return _to_body(
        await agents.change(agent_id, caller.user, lambda before: _changes(asked, before.bounds, before.budgets))
    )


@router.delete("/agents/{agent_id}")
async def delete_agent(caller: Admin, agents: Need[AgentService], agent_id: PathId) -> Deleted:
    """Delete an agent: its wakes are cancelled and its runs stopped. Its sessions can still be read."""
    return Deleted(wakes_left=await agents.delete(agent_id, caller.user.id))


NULLABLE = frozenset({"model", "thinking_level", "database_mb", "timezone"})  # null has a meaning


def _changes(asked: AgentChange, bounds: Bounds, budgets: Budgets) -> dict[str, Any]:
    """Return the new values of an agent's fields."""
    changes = asked.to_changes(NULLABLE)
    for name in changes.keys() & {"toolsets", "allowed_models", "mcp_servers", "ask_before", "profiles", "subagents"}:
        changes[name] = tuple(dict.fromkeys(changes[name]))
    if "run_limit_seconds" in changes:
        changes["run_limit"] = timedelta(seconds=changes.pop("run_limit_seconds"))
    if "budgets" in changes:
        changes["budgets"] = _change_budgets(changes["budgets"], budgets)
    if "schedule" in changes:
        changes["bounds"] = _change_bounds(changes.pop("schedule"), bounds)
    return changes


def _change_budgets(asked: BudgetsChange, before: Budgets) -> Budgets:
    changes: dict[str, int | None] = {}
    for name in asked.model_fields_set:
        value = getattr(asked, name)
        if name.endswith("_cost"):
            changes[f"{name}_micros"] = None if value is None else round(value * 1_000_000)
        else:
            changes[name] = value
    return replace(before, **changes)


def _change_bounds(asked: ScheduleChange, before: Bounds) -> Bounds:
    base = before if asked.mode is None else PRESETS[asked.mode]
    given = asked.model_fields_set
    horizon, interval = asked.max_horizon_seconds, asked.min_interval_seconds
    return Bounds(
        mode=base.mode,
        max_horizon=base.max_horizon if horizon is None else timedelta(seconds=horizon),
        min_interval=base.min_interval if interval is None else timedelta(seconds=interval),
        daily_cap=base.daily_cap if asked.daily_cap is None else asked.daily_cap,
        quiet_from=_time(asked.quiet_from) if "quiet_from" in given else base.quiet_from,
        quiet_to=_time(asked.quiet_to) if "quiet_to" in given else base.quiet_to,
        days=base.days if asked.days is None else frozenset(asked.days),
    )


def _time(text: str | None) -> time | None:
    return None if text is None else time.fromisoformat(text)


def _to_body(agent: Agent) -> AgentShape:
    return AgentShape.from_fields(
        agent,
        bounds=BoundsShape.from_fields(agent.bounds, is_customised=is_customised(agent.bounds)),
        zone=agent.zone,
        is_zone_known=agent.known_zone is not None,
        offered_timezone=rules.offered_zone(agent),
        hidden_toolsets=list(hidden_toolsets(agent)),
    )


# The files that instruct an agent.


FilePath = Annotated[str, Path(max_length=200, description="`AGENTS.md`, or `skills/NAME.md`.")]


class InstructionFileShape(Shape):
    """A file that instructs an agent, as it is on disk now."""

    path: str
    size: int
    digest: str  # SHA-256 of the text, which accepting it names
    # False: no person has saved or accepted this content, so prompts leave it out.
    accepted: bool = Field(validation_alias="is_accepted")
    text: str


class InstructionFileList(Shape):
    files: list[InstructionFileShape]


class NewText(RequestBody):
    text: Annotated[Text, Field(max_length=MAX_INSTRUCTION_FILE)]


class Seen(RequestBody):
    digest: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


@router.get("/agents/{agent_id}/instructions")
async def list_instructions(
    caller: Reader, instructions: Need[InstructionFiles], agent_id: PathId
) -> InstructionFileList:
    """List the files that instruct an agent (`AGENTS.md`, its skills), and whether each is accepted."""
    found = await instructions.list(agent_id, caller.user.id)
    return InstructionFileList(files=[InstructionFileShape.model_validate(file) for file in found])


@router.post("/agents/{agent_id}/instructions/{path:path}/accept")
async def accept_instructions(
    caller: Admin, instructions: Need[InstructionFiles], agent_id: PathId, path: FilePath, asked: Seen
) -> InstructionFileShape:
    """Accept a file as it is, named by its digest, so that prompts use it."""
    return InstructionFileShape.model_validate(await instructions.accept(agent_id, caller.user.id, path, asked.digest))


@router.put("/agents/{agent_id}/instructions/{path:path}")
async def save_instructions(
    caller: Admin, instructions: Need[InstructionFiles], agent_id: PathId, path: FilePath, asked: NewText
) -> InstructionFileShape:
    """Write a file that instructs an agent. What a person saves is accepted."""
    return InstructionFileShape.model_validate(await instructions.save(agent_id, caller.user.id, path, asked.text))
