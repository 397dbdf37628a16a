"""Routes for saved views of an agent's database, and for queries."""

from collections.abc import Sequence
from typing import Annotated, Any, Literal

from fastapi import APIRouter
from pydantic import AwareDatetime, Field

from wakeful.server.rest.database.ask import Reading, Writing
from wakeful.server.rest.database.shapes import Found, Limit, PathView
from wakeful.server.rest.shapes import Done, PathId, RequestBody, Shape, Text
from wakeful.server.routes import DoorRoute

router = APIRouter(route_class=DoorRoute, tags=["agents' databases"])

Render = Literal["table", "bar", "line", "pie", "number"]
Default = str | int | float | bool | None
Params = dict[str, Any] | list[Any] | None  # an object for :names, a list for ?


class ParameterShape(Shape):
    name: str
    description: str = ""
    default: Default = None  # see `required_parameters` for those without one


class ViewShape(Shape):
    """A saved SELECT."""

    name: str
    sql: str
    description: str
    parameters: list[ParameterShape]
    required_parameters: list[str]
    render: Render
    pinned: bool
    created_at: AwareDatetime
    updated_at: AwareDatetime


class Views(Shape):
    views: list[ViewShape]


class NewParameter(RequestBody):
    """A parameter with a default, even null, can be left out when the view is run."""

    name: Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,62}$")]
    description: Annotated[Text, Field(max_length=500)] = ""
    default: Default = None


class NewView(RequestBody):
    sql: Text
    description: Annotated[Text, Field(max_length=2_000)] = ""
    parameters: Annotated[Sequence[NewParameter], Field(max_length=50)] = ()
    render: Render = "table"
    pinned: bool | None = None  # null: unchanged


class ViewSaved(Shape):
    view: str
    outcome: Literal["created", "replaced"]
    pinned: bool


class Pin(RequestBody):
    pinned: bool


class ViewArguments(RequestBody):
    params: dict[str, Any] | None = None
    limit: Limit = 1_000


class StatementBody(RequestBody):
    sql: Text
    params: Params = None
    limit: Limit = 1_000
    include_deleted: bool = False


class ViewFound(Found):
    view: str
    render: Render
    changed_at: AwareDatetime | None  # when the database was last changed


@router.post("/agents/{agent_id}/db/query")
async def run_query(ask: Reading, agent_id: PathId, asked: StatementBody) -> Found:
    """Run one SELECT."""
    return await ask(agent_id, "query", **asked.model_dump())


@router.get("/agents/{agent_id}/db/views")
async def list_views(ask: Reading, agent_id: PathId) -> Views:
    """List saved views."""
    return Views(views=await ask(agent_id, "list_views"))


@router.put("/agents/{agent_id}/db/views/{view}")
async def define_view(ask: Writing, agent_id: PathId, view: PathView, asked: NewView) -> ViewSaved:
    """Create or replace a view."""
    return await ask(agent_id, "define_view", name=view, **asked.model_dump(exclude_unset=True))


@router.delete("/agents/{agent_id}/db/views/{view}")
async def drop_view(ask: Writing, agent_id: PathId, view: PathView) -> Done:
    """Delete a view; the changelog keeps its definition."""
    await ask(agent_id, "drop_view", name=view)
    return Done()


@router.put("/agents/{agent_id}/db/views/{view}/pin")
async def pin_view(ask: Writing, agent_id: PathId, view: PathView, asked: Pin) -> Done:
    """Pin a view to the agent's home page, or unpin it."""
    await ask(agent_id, "pin_view", name=view, pinned=asked.pinned)
    return Done()


@router.post("/agents/{agent_id}/db/views/{view}/run")
async def run_view(ask: Reading, agent_id: PathId, view: PathView, asked: ViewArguments) -> ViewFound:
    """Run a saved view."""
    return await ask(agent_id, "run_view", name=view, **asked.model_dump())
