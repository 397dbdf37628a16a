"""Routes for incoming hooks, and the one that other systems send to."""

from typing import Annotated, Any, Literal, Self, cast

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse
from pydantic import AwareDatetime, Field

from wakeful.core.records import PER_MINUTE, Hook, HookMode, ReceivedOutcome, Scheme
from wakeful.hooks import rules
from wakeful.hooks.receiving import Received, Receiving
from wakeful.hooks.service import Hooks, Revealed
from wakeful.http.auth import Admin, Reader
from wakeful.http.routes import DoorRoute
from wakeful.http.services import Need
from wakeful.http.shapes import (
    LABEL,
    Done,
    Id,
    Most,
    Page,
    PathId,
    RequestBody,
    Shape,
    Sparse,
    Text,
    next_page,
    read_page,
)
from wakeful.http.tries import Tries

router = APIRouter(route_class=DoorRoute, tags=["hooks"])

Name = Annotated[str, Field(min_length=1, max_length=rules.MAX_NAME, pattern=LABEL)]
Events = Annotated[
    list[Annotated[str, Field(min_length=1, max_length=rules.MAX_EVENT)]],
    Field(
        max_length=rules.MAX_EVENTS,
        description="Names of events that start something, such as push or pull_request.opened; a name also stands for "
        "its actions, and one with * at its end for all that begin so. Empty: all.",
    ),
]
ToolNames = Annotated[
    list[Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{1,64}$")]],
    Field(
        max_length=rules.MAX_TOOLS,
        description="The tools of its runs, of those that the agent has. Null: those that change nothing outside of "
        "the agent's database, files and bookings, and your inbox.",
    ),
]
# Not validated here: a validation error would show the value, which is a secret.
Secret = Annotated[
    str, Field(description="The secret that the sender has made, as Stripe does; it is never shown again.")
]
CoalesceSeconds = Annotated[
    int,
    Field(
        ge=0,
        le=rules.MAX_COALESCE,
        description="Fold the deliveries of this many seconds into one run; 0: a run for each.",
    ),
]
PerMinute = Annotated[
    int, Field(ge=1, le=rules.MAX_PER_MINUTE, description="Deliveries that it takes in a minute; more get 429.")
]
ModeField = Annotated[
    HookMode, Field(description="run: the agent is woken. notify: you are notified, without a model.")
]
Instructions = Annotated[
    Text, Field(description="What the agent reads before what was sent; with `notify`, the text above it.")
]
SessionId = Annotated[
    Id,
    Field(description="A session of the agent in which all deliveries land. Null: a new session for each run."),
]
Confirm = Annotated[
    bool,
    Field(description="Must be true to set `session_id`: what is sent stays in that session's transcript."),
]


class HookShape(Shape):
    """An incoming hook. Its secret is shown once, when it is made."""

    id: str
    agent_id: str
    session_id: str | None
    name: str
    scheme: Scheme
    path: str = Field(description="The path to send to, with the server's base path.")
    url: str | None = Field(description="The address to send to; null without the setting public_url.")
    events: list[str]
    instructions: str
    tools: list[str] | None
    coalesce_seconds: int
    per_minute: int
    mode: HookMode
    enabled: bool
    old_secret_until: AwareDatetime | None = Field(description="When the secret before the last rotation ends.")
    last_at: AwareDatetime | None = Field(description="The last delivery that was accepted.")
    refused_at: AwareDatetime | None = Field(description="The last delivery that was refused.")
    refused_why: str | None
    created_at: AwareDatetime
    updated_at: AwareDatetime

    @classmethod
    def of(cls, hook: Hook, request: Request) -> Self:
        return cls.model_validate(_fields(hook, request))


class RevealedHook(HookShape):
    """A hook with its secret, which is not shown again; null: you have set it yourself."""

    secret: str | None

    @classmethod
    def with_secret(cls, revealed: Revealed, request: Request) -> Self:
        return cls.model_validate({**_fields(revealed.hook, request), "secret": revealed.secret})


class HookList(Shape):
    hooks: list[HookShape]


class NewHook(RequestBody):
    name: Name
    scheme: Scheme = Field(description="Who sends, and so how a delivery is proven.")
    instructions: Instructions = ""
    events: Events = Field(default_factory=list[str])
    tools: ToolNames | None = None
    coalesce_seconds: CoalesceSeconds = 0
    per_minute: PerMinute = PER_MINUTE
    mode: ModeField = "run"
    enabled: bool = True
    session_id: SessionId | None = None
    confirm_session: Confirm = False
    secret: Secret | None = None


class HookChange(RequestBody):
    """Fields that are left out stay unchanged."""

    name: Name | None = None
    instructions: Instructions | None = None
    events: Events | None = None
    tools: ToolNames | None = None
    coalesce_seconds: CoalesceSeconds | None = None
    per_minute: PerMinute | None = None
    mode: ModeField | None = None
    enabled: bool | None = None
    session_id: SessionId | None = None
    confirm_session: Confirm = False


class Rotation(RequestBody):
    secret: Secret | None = None


class HookDeliveryShape(Shape):
    """A delivery that was accepted."""

    id: str
    delivery_id: str = Field(description="The sender's id; or sha256: and the hash of the body, if it sent none.")
    event: str | None
    at: AwareDatetime
    outcome: ReceivedOutcome
    run_id: str | None = Field(description="The run that it starts or is part of; it appears when the wake fires.")
    wake_id: str | None
    size: int = Field(description="Bytes of the body.")


class HookDeliveryDetail(HookDeliveryShape):
    payload: str | None = Field(description="The body, as text. Null: it was deleted, or never kept.")


class HookDeliveryList(Sparse):
    deliveries: list[HookDeliveryShape]
    next: str | None = None


class DeliveryAnswer(Sparse):
    """The answer to the sender."""

    status: Literal["accepted", "folded", "notified", "duplicate", "ping", "ignored"]
    delivery: str
    run_id: str | None = None


@router.get("/hooks")
async def list_hooks(caller: Reader, hooks: Need[Hooks], request: Request) -> HookList:
    """List the caller's incoming hooks."""
    found = await hooks.of_user(caller.user.id)
    return HookList(hooks=[HookShape.of(each, request) for each in found])


@router.post("/agents/{agent_id}/hooks", status_code=201)
async def add_hook(
    caller: Admin, hooks: Need[Hooks], request: Request, agent_id: PathId, asked: NewHook
) -> RevealedHook:
    """Make an incoming hook for an agent. The secret is in the response, and never shown again."""
    revealed = await hooks.add(
        caller.user.id,
        agent_id,
        asked.scheme,
        _to_fields(asked.model_dump(exclude={"scheme", "secret", "confirm_session"})),
        secret=asked.secret,
        confirm_session=asked.confirm_session,
    )
    return RevealedHook.with_secret(revealed, request)


@router.get("/hooks/{hook_id}")
async def get_hook(caller: Reader, hooks: Need[Hooks], request: Request, hook_id: PathId) -> HookShape:
    """Return an incoming hook."""
    return HookShape.of(await hooks.get(hook_id, caller.user.id), request)


@router.patch("/hooks/{hook_id}")
async def change_hook(
    caller: Admin, hooks: Need[Hooks], request: Request, hook_id: PathId, asked: HookChange
) -> HookShape:
    """Change an incoming hook, or switch it off or on."""
    changes = asked.to_changes(nullable=("tools", "session_id"))
    changes.pop("confirm_session", None)
    changed = await hooks.change(hook_id, caller.user.id, _to_fields(changes), confirm_session=asked.confirm_session)
    return HookShape.of(changed, request)


@router.post("/hooks/{hook_id}/rotate")
async def rotate_hook(
    caller: Admin, hooks: Need[Hooks], request: Request, hook_id: PathId, asked: Rotation | None = None
) -> RevealedHook:
    """Replace the secret of a hook. The one before is accepted for another 24 hours."""
    revealed = await hooks.rotate(hook_id, caller.user.id, None if asked is None else asked.secret)
    return RevealedHook.with_secret(revealed, request)


@router.post("/hooks/{hook_id}/test", status_code=202)
async def test_hook(caller: Admin, hooks: Need[Hooks], hook_id: PathId) -> DeliveryAnswer:
    """Send a signed test delivery to a hook. It starts a run, or notifies you, as any other would."""
    return _answer(await hooks.test(hook_id, caller.user.id))


@router.delete("/hooks/{hook_id}")
async def delete_hook(caller: Admin, hooks: Need[Hooks], hook_id: PathId) -> Done:
    """Delete a hook with its deliveries. Its runs that have not begun are cancelled."""
    await hooks.delete(hook_id, caller.user.id)
    return Done()


@router.get("/hooks/{hook_id}/deliveries")
async def list_deliveries(
    caller: Reader, hooks: Need[Hooks], hook_id: PathId, page: Page = None, most: Most = 50
) -> HookDeliveryList:
    """List the deliveries of a hook of the last 30 days, the latest first."""
    found = await hooks.deliveries(hook_id, caller.user.id, before=read_page(page), most=most)
    return HookDeliveryList(
        deliveries=[HookDeliveryShape.model_validate(each) for each in found],
        next=next_page(found, most, lambda each: (each.at, each.id)),
    )


@router.get("/hooks/{hook_id}/deliveries/{hook_delivery_id}")
async def get_delivery(
    caller: Reader, hooks: Need[Hooks], hook_id: PathId, hook_delivery_id: PathId
) -> HookDeliveryDetail:
    """Return a delivery with its body."""
    found = await hooks.delivery(hook_id, caller.user.id, hook_delivery_id)
    text = None if found.body is None else found.body.decode("utf-8", "replace")
    return HookDeliveryDetail.from_fields(found.delivery, payload=text)


@router.post(
    "/hooks/{hook_id}", status_code=202, response_model=DeliveryAnswer, responses={200: {"model": DeliveryAnswer}}
)
async def deliver(receiving: Need[Receiving], request: Request, hook_id: PathId) -> Any:
    """Send a delivery to a hook: the route for other systems, without a token.

    The sender proves itself with the signature or secret of the hook's scheme. 202: accepted, with the id of the run.
    200: a duplicate with the run of the first, a ping, or an event that the hook is not for. 401: not proven. 404: no
    such hook, or it is off. 409: its id was used for another body. 429: too many; see Retry-After.
    """
    tries: Tries = request.app.state.hook_tries
    body = await request.body()
    client = request.client.host if request.client else ""
    try:
        received = await receiving.receive(hook_id, dict(request.headers), body)
    except rules.BadSignature:
        tries.check(client)  # only now: forged deliveries must not keep out a proven one from the same address
        tries.count(client)
        raise
    answer = _answer(received)
    status = 202 if received.answer in ("run", "folded") else 200
    return JSONResponse(answer.model_dump(mode="json"), status_code=status)


_STATUSES: dict[str, Any] = {"run": "accepted", "filtered": "ignored"}


def _answer(received: Received) -> DeliveryAnswer:
    status = _STATUSES.get(received.answer, received.answer)
    return DeliveryAnswer(status=status, delivery=received.delivery.id, run_id=received.delivery.run_id)


def _fields(hook: Hook, request: Request) -> dict[str, Any]:
    base_path: str = request.app.state.base_path
    public: str | None = request.app.state.public_address
    return {
        **{name: getattr(hook, name) for name in HookShape.model_fields if hasattr(hook, name)},
        "path": f"{base_path}/hooks/{hook.id}",
        "url": None if public is None else f"{public}/hooks/{hook.id}",
        "old_secret_until": hook.old_until,
        "refused_why": hook.refused_why and rules.REFUSED.get(hook.refused_why, hook.refused_why),
    }


def _to_fields(sent: dict[str, Any]) -> dict[str, Any]:
    """Return fields as the rules have them, where lists are tuples."""
    return {name: tuple(cast("list[str]", value)) if isinstance(value, list) else value for name, value in sent.items()}
