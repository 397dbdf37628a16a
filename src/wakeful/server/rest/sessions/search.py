"""The route of the search in messages."""

import re
from typing import Annotated, get_args

from fastapi import APIRouter, Query
from pydantic import AwareDatetime

from wakeful.domain.sessions.search import MAX_QUERY, IndexProgress, Snippet
from wakeful.server.auth import Reader
from wakeful.server.rest.pages import BadPage, Most, Page
from wakeful.server.rest.shapes import Shape, Sparse, shape_of
from wakeful.server.routes import DoorRoute
from wakeful.server.services import ServicesDep
from wakeful.service.sessions.search import Hit, Kind, Place

router = APIRouter(route_class=DoorRoute, tags=["sessions"])

Words = Annotated[
    str,
    Query(
        min_length=1,
        max_length=MAX_QUERY,
        description='Words that must all occur, and "quoted phrases". Case, accents and punctuation do not matter.',
    ),
]

_PAGE = re.compile(rf"({'|'.join(get_args(Kind))})\.(-?[0-9]{{1,18}})", re.ASCII)


class SearchResult(Shape):
    """A message that matches, or a session by its title: then `message_id`, `run_id` and `role` are null."""

    session_id: str
    session_title: str
    agent_id: str
    message_id: str | None
    run_id: str | None
    role: str | None
    created_at: AwareDatetime
    snippet: str  # a part of the text, on one line; plain text, never HTML
    matches: list[tuple[int, int]]  # ranges of the snippet that match: [start, end), in UTF-16 units as in JavaScript


class IndexShape(shape_of(IndexProgress)):
    """Whether everything from before the last upgrade can be found yet, and how much of it."""


class SearchAnswer(Sparse):
    results: list[SearchResult]  # titles first, then messages, the latest first; a page may have fewer than `limit`
    next: str | None = None
    index: IndexShape


@router.get("/search")
async def search(caller: Reader, services: ServicesDep, q: Words, most: Most = 20, page: Page = None) -> SearchAnswer:
    """Search the caller's messages and session titles, of people and agents; results of tools are not searched.

    A word of three letters or more is found anywhere in a word, a shorter one at its beginning.
    """
    answer = await services.search.find(caller.user.id, q, most, _read_place(page))
    return SearchAnswer(
        results=[_to_body(hit) for hit in answer.hits],
        next=None if answer.next is None else f"{answer.next.kind}.{answer.next.before}",
        index=IndexShape.model_validate(answer.index),
    )


def _read_place(page: str | None) -> Place | None:
    if page is None:
        return None
    found = _PAGE.fullmatch(page)
    if found is None:
        raise BadPage(page)
    kind: Kind = "titles" if found[1] == "titles" else "messages"
    return Place(kind=kind, before=int(found[2]))


def _to_body(hit: Hit) -> SearchResult:
    return SearchResult.from_fields(hit.found, snippet=hit.snippet.text, matches=_in_utf16(hit.snippet))


def _in_utf16(snippet: Snippet) -> list[tuple[int, int]]:
    """Count an emoji as two, as JavaScript does."""

    def place_of(character: int) -> int:
        return len(snippet.text[:character].encode("utf-16-le")) // 2

    return [(place_of(start), place_of(end)) for start, end in snippet.matches]
