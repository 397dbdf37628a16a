"""Routes for the inbox."""

from typing import Any
from urllib.parse import quote

from fastapi import APIRouter
from pydantic import AwareDatetime, Field

from wakeful.core.types import Notice
from wakeful.http.auth import Chatter, Reader
from wakeful.http.routes import DoorRoute
from wakeful.http.services import Need
from wakeful.http.shapes import Done, Most, PathId, Shape, shape_of
from wakeful.notices.service import NoticeService, write_times
from wakeful.notices.texts import call_to_approve

router = APIRouter(route_class=DoorRoute, tags=["notifications"])


class ActionShape(Shape):
    """A possible reaction: a request to this server."""

    label: str
    method: str
    path: str
    body: dict[str, Any]


class NotificationShape(shape_of(Notice, without=("user_id", "once_key"))):
    """A notification in the inbox. `view_ref` is a saved view of the agent's database that shows more."""

    body: str = Field(description="Its times are in the zone of the user.")
    times: dict[str, AwareDatetime] = Field(
        description="The times in `body`: as they are written there, and the instants."
    )
    resolved_at: AwareDatetime | None = Field(description="When what it asks for was done.")
    actions: list[ActionShape] = Field(default_factory=list[ActionShape])


class Notifications(Shape):
    notifications: list[NotificationShape]


@router.get("/notifications")
async def list_notifications(caller: Reader, notices: Need[NoticeService], most: Most = 50) -> Notifications:
    """List the latest notifications."""
    found = await notices.of_user(caller.user.id, most)
    return Notifications(notifications=[_to_body(notice, caller.user.timezone) for notice in found])


@router.post("/notifications/read")
async def read_all(caller: Chatter, notices: Need[NoticeService]) -> Done:
    """Mark every notification as read."""
    await notices.mark_read(caller.user.id)
    return Done()


@router.post("/notifications/{notification_id}/read")
async def read_one(caller: Chatter, notices: Need[NoticeService], notification_id: PathId) -> Done:
    """Mark a notification as read."""
    await notices.mark_read(caller.user.id, notification_id)
    return Done()


def _to_body(notice: Notice, zone: str | None) -> NotificationShape:
    text = write_times(notice, zone)
    shown = NotificationShape.from_fields(notice, body=text.body, times=text.times)
    call_id = call_to_approve(notice)
    if call_id is None:
        return shown
    path = f"/runs/{notice.run_id}/approvals/{quote(call_id, safe='')}"
    action = ActionShape(label="Approve and run again", method="POST", path=path, body={"approve": True})
    return shown.model_copy(update={"actions": [action]})
