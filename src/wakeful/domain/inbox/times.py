"""Times in notices: saved as instants, written in the zone of the person who reads them."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from wakeful.domain.types import Notice
from wakeful.domain.zones import write_time

_PLACE = re.compile(r"\{(\w+)\}")


@dataclass(frozen=True, slots=True, kw_only=True)
class NoticeText:
    """The body of a notice for one person, and the times in it: as they are written there, and the instants."""

    body: str
    times: Mapping[str, datetime] = field(default_factory=dict[str, datetime])


def write_times(notice: Notice, zone: str | None) -> NoticeText:
    """Return the body of a notice with its times in a person's zone; in UTC if it is not known."""
    times = {place: datetime.fromisoformat(text) for place, text in (notice.times or {}).items()}
    written = {place: write_time(at, zone) for place, at in times.items()}
    return NoticeText(
        body=_PLACE.sub(lambda found: written.get(found[1], found[0]), notice.body),
        times={written[place]: at for place, at in times.items()},
    )
