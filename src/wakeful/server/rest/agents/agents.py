"""Agents."""

from datetime import time, timedelta
from typing import Annotated, Any, Literal

from fastapi import APIRouter
from pydantic import AwareDatetime, Field

from wakeful.domain.agents import agents
from wakeful.domain.agents.agents import MAX_DATABASE_MB, MAX_MODELS, MAX_SUBAGENTS
from wakeful.domain.bounds.bounds import PRESETS, is_customised
from wakeful.domain.types import Agent, Bounds, Budgets, ScheduleMode, ThinkingLevel
from wakeful.server.auth import Admin, Reader
from wakeful.server.rest.shapes import Done, Id, Label, PathId, RequestBody, Shape, Sparse, Text, Zone
from wakeful.server.routes import DoorRoute
from wakeful.server.services import ServicesDep

router = APIRouter(route_class=DoorRoute, tags=["agents"])

Toolset = Annotated[str, Field(json_schema_extra={"enum": [*agents.TOOLSETS]})]
Toolsets = Annotated[list[Toolset], Field(max_length=20)]
McpNames = Annotated[list[Annotated[str, Field(pattern=r"^[a-z][a-z0-9-]{0,31}$")]], Field(max_length=50)]
ToolNames = Annotated[list[Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{1,64}\*?$")]], Field(max_length=200)]
AgentIds = Annotated[list[Id], Field(max_length=50)]
Money = Annotated[float, Field(ge=0, le=1_000_000)]  # dollars
Count = Annotated[int, Field(ge=0, le=10**15)]
Seconds = Annotated[int, Field(ge=1, le=365 * 86_400)]
Clock = Annotated[str, Field(pattern=r"^([01]\d|2[0-3]):[0-5]\d$")]
Model = Annotated[str, Field(min_length=1, max_length=200, pattern=r"^\S+$")]


class BudgetsShape(Shape):
    """Limits of what an agent may spend; null: no limit."""

    run_tokens: Count | None = None
    run_cost: Money | None = None
    day_tokens: Count | None = None
    day_cost: Money | None = None


class BoundsShape(Shape):
    """Limits of the next runs that an agent books itself."""

    mode: ScheduleMode
    is_customised: bool
    max_horizon_seconds: int
    min_interval_seconds: int
    daily_cap: int
    quiet_from: str | None
    quiet_to: str | None
    days: list[int]


class AgentShape(Shape):
    """An agent and its settings."""

    id: str
    name: str
    description: str
    model: str | None  # null: the server's own
    allowed_models: list[str]  # that its schedules may ask for besides its own; only an owner changes them
    system_prompt: str
    toolsets: list[str]
    mcp_servers: list[str]
    ask_before: list[str]  # tools that need a person's approval
    profiles: list[str]  # ids of agents it may hand over to
    may_write_skills: bool
    subagents: list[str]  # ids of the agents it may give a task to
    planning: bool
    thinking_level: ThinkingLevel | None
    max_iterations: int
    run_limit_seconds: int
    budgets: BudgetsShape
    database_mb: int | None  # what its own database may hold; null: as the server's settings say
    timezone: str | None = Field(description="Its own IANA zone. Null: its user's.")
    zone: str = Field(description="The zone of its quiet hours, days and today: its own, else its user's, else UTC.")
    is_zone_known: bool = Field(
        description="False: neither it nor its user has a zone, and wall-clock times are refused."
    )
    offered_timezone: str | None = Field(
        description="Its user's zone, if it should be asked once whether to use it instead of the stored one. Setting "
        "`timezone`, to null or to the stored zone, answers the question."
    )
    self_scheduling: bool
    schedule: BoundsShape
    created_at: AwareDatetime
    updated_at: AwareDatetime


class SpentShape(Shape):
    """Usage since a time, including planning and subagents."""

    since: AwareDatetime
    runs: int
    model_calls: int
    tokens: int
    cost: float


class AgentUsage(Shape):
    """Usage of an agent today, in its time zone, and its limits; left is null without a limit."""

    today: SpentShape
    budgets: BudgetsShape
    tokens_left: int | None
    cost_left: float | None


class ModelTrialShape(Sparse):
    """The result of a test request to the model; `reason` is the provider's error, if it failed."""

    model: str
    outcome: Literal["answered", "failed", "timed_out"]
    seconds: float
    said: str | None = None
    reason: str | None = None


class ToolShape(Shape):
    """A tool that an agent can be given; without a toolset, other settings of the agent show it."""

    name: str
    toolset: str | None


class ToolList(Shape):
    tools: list[ToolShape]


class AgentList(Shape):
    agents: list[AgentShape]


class BudgetsChange(RequestBody):
    """Fields that are left out stay unchanged; null removes a limit."""

    run_tokens: Count | None = None
    run_cost: Money | None = None
    day_tokens: Count | None = None
    day_cost: Money | None = None


class ScheduleChange(RequestBody):
    """A mode sets every bound; what comes with it is changed afterwards."""

    mode: ScheduleMode | None = None
    max_horizon_seconds: Seconds | None = None
    min_interval_seconds: Annotated[int, Field(ge=0, le=365 * 86_400)] | None = None
    daily_cap: Annotated[int, Field(ge=0, le=100_000)] | None = None
    quiet_from: Clock | None = None
    quiet_to: Clock | None = None
    days: Annotated[list[Annotated[int, Field(ge=0, le=6)]], Field(max_length=7)] | None = None


class AgentChange(RequestBody):
    """Fields that are left out stay unchanged."""

    name: Label | None = None
    description: Text | None = None
    model: Model | None = None
    allowed_models: Annotated[list[Model], Field(max_length=MAX_MODELS)] | None = None
    system_prompt: Text | None = None
    toolsets: Toolsets | None = None
    mcp_servers: McpNames | None = None
    ask_before: ToolNames | None = None
    profiles: AgentIds | None = None
    may_write_skills: bool | None = None
    subagents: Annotated[list[Id], Field(max_length=MAX_SUBAGENTS)] | None = None
    planning: bool | None = None
    thinking_level: ThinkingLevel | None = None
    max_iterations: Annotated[int, Field(ge=1, le=1_000)] | None = None
    run_limit_seconds: Annotated[int, Field(ge=1, le=86_400)] | None = None
    budgets: BudgetsChange | None = None
    database_mb: Annotated[int, Field(ge=1, le=MAX_DATABASE_MB)] | None = None
    timezone: Zone | None = None  # null: its user's
    self_scheduling: bool | None = None
    schedule: ScheduleChange | None = None


class NewAgent(AgentChange):
    name: Label  # pyright: ignore[reportIncompatibleVariableOverride, reportGeneralTypeIssues]


@router.get("/agents")
async def list_agents(caller: Reader, services: ServicesDep) -> AgentList:
    """List the caller's agents."""
    return AgentList(agents=[_to_body(agent) for agent in await services.agents.of_user(caller.user.id)])


@router.post("/agents", status_code=201)
async def make_agent(caller: Admin, services: ServicesDep, asked: NewAgent) -> AgentShape:
    """Make an agent. Self-scheduling and the database are off unless asked for."""
    changes = _changes(asked, PRESETS["reactive"], Budgets())
    changes.pop("name")
    return _to_body(await services.agents.make(caller.user, asked.name, changes))


@router.get("/agents/{agent_id}")
async def get_agent(caller: Reader, services: ServicesDep, agent_id: PathId) -> AgentShape:
    """Show an agent."""
    return _to_body(await services.agents.get(agent_id, caller.user.id))


@router.get("/agents/{agent_id}/usage")
async def get_agent_usage(caller: Reader, services: ServicesDep, agent_id: PathId) -> AgentUsage:
    """Show what an agent has used today, and what it may use."""
    used = await services.agents.usage(agent_id, caller.user.id)
    spent, limits = used.spent, used.agent.budgets
    return AgentUsage(
        today=SpentShape(
            since=used.since,
            runs=spent.runs,
            model_calls=spent.model_calls,
            tokens=spent.tokens,
            cost=spent.cost_micros / 1_000_000,
        ),
        budgets=_budgets_to_body(limits),
        tokens_left=_left(limits.day_tokens, spent.tokens),
        cost_left=_dollars(_left(limits.day_cost_micros, spent.cost_micros)),
    )


@router.post("/agents/{agent_id}/test-model")
async def test_agent_model(caller: Admin, services: ServicesDep, agent_id: PathId) -> ModelTrialShape:
    """Ask an agent's model for one word, and say what came of it. It counts against no budget."""
    agent = await services.agents.get(agent_id, caller.user.id)
    return ModelTrialShape.model_validate(await services.try_model(agent.model))


@router.get("/tools")
async def list_tools(_caller: Reader, services: ServicesDep) -> ToolList:
    """List every tool of this server's own, for the settings that name tools."""
    return ToolList(tools=[ToolShape(name=name, toolset=toolset) for name, toolset in services.toolset_of().items()])


@router.patch("/agents/{agent_id}")
async def change_agent(caller: Admin, services: ServicesDep, agent_id: PathId, asked: AgentChange) -> AgentShape:
    """Change settings of an agent."""
    before = await services.agents.get(agent_id, caller.user.id)
    changes = _changes(asked, before.bounds, before.budgets)
    return _to_body(await services.agents.change(agent_id, caller.user, changes))


@router.delete("/agents/{agent_id}")
async def delete_agent(caller: Admin, services: ServicesDep, agent_id: PathId) -> Done:
    """End an agent: its wakes are cancelled and its runs stopped. Its sessions can still be read."""
    await services.agents.delete(agent_id, caller.user.id)
    return Done()


_NULLABLE = frozenset({"model", "thinking_level", "database_mb", "timezone"})  # null means something there


def _changes(asked: AgentChange, bounds: Bounds, budgets: Budgets) -> dict[str, Any]:
    """Return what an agent's fields become."""
    given: dict[str, Any] = {name: getattr(asked, name) for name in asked.model_fields_set}
    changes: dict[str, Any] = {key: value for key, value in given.items() if value is not None or key in _NULLABLE}
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
    values = {
        "run_tokens": before.run_tokens,
        "run_cost_micros": before.run_cost_micros,
        "day_tokens": before.day_tokens,
        "day_cost_micros": before.day_cost_micros,
    }
    for name in asked.model_fields_set:
        value = getattr(asked, name)
        if name.endswith("_cost"):
            values[f"{name}_micros"] = None if value is None else round(value * 1_000_000)
        else:
            values[name] = value
    return Budgets(**values)


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


def _dollars(micros: int | None) -> float | None:
    return None if micros is None else micros / 1_000_000


def _left(limit: int | None, used: int) -> int | None:
    return None if limit is None else max(0, limit - used)


def _budgets_to_body(budgets: Budgets) -> BudgetsShape:
    return BudgetsShape(
        run_tokens=budgets.run_tokens,
        run_cost=_dollars(budgets.run_cost_micros),
        day_tokens=budgets.day_tokens,
        day_cost=_dollars(budgets.day_cost_micros),
    )


def _to_body(agent: Agent) -> AgentShape:
    bounds = agent.bounds
    return AgentShape(
        id=agent.id,
        name=agent.name,
        description=agent.description,
        model=agent.model,
        allowed_models=list(agent.allowed_models),
        system_prompt=agent.system_prompt,
        toolsets=list(agent.toolsets),
        mcp_servers=list(agent.mcp_servers),
        ask_before=list(agent.ask_before),
        profiles=list(agent.profiles),
        may_write_skills=agent.may_write_skills,
        subagents=list(agent.subagents),
        planning=agent.planning,
        thinking_level=agent.thinking_level,
        max_iterations=agent.max_iterations,
        run_limit_seconds=int(agent.run_limit.total_seconds()),
        budgets=_budgets_to_body(agent.budgets),
        database_mb=agent.database_mb,
        timezone=agent.timezone,
        zone=agent.zone,
        is_zone_known=agent.known_zone is not None,
        offered_timezone=agents.offered_zone(agent),
        self_scheduling=agent.self_scheduling,
        schedule=BoundsShape(
            mode=bounds.mode,
            is_customised=is_customised(bounds),
            max_horizon_seconds=int(bounds.max_horizon.total_seconds()),
            min_interval_seconds=int(bounds.min_interval.total_seconds()),
            daily_cap=bounds.daily_cap,
            quiet_from=None if bounds.quiet_from is None else bounds.quiet_from.isoformat("minutes"),
            quiet_to=None if bounds.quiet_to is None else bounds.quiet_to.isoformat("minutes"),
            days=sorted(bounds.days),
        ),
        created_at=agent.created_at,
        updated_at=agent.updated_at,
    )
