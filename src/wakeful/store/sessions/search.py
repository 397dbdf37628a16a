"""The search index in the store: texts by their terms, and how far the index has been built."""

from collections.abc import Sequence
from dataclasses import dataclass

from wakeful.domain.sessions.folding import MAX_SEARCHED, terms_of
from wakeful.domain.sessions.search import SEARCHED_ROLES, Found, IndexProgress
from wakeful.domain.types import Message
from wakeful.store.drivers.database import Params, Statements
from wakeful.store.rows import FOUND


@dataclass(frozen=True, slots=True, kw_only=True)
class Indexed:
    """Progress in the texts from before the upgrade: they are indexed from these ids on; None: all."""

    sessions_before: str | None
    messages_before: str | None
    next_number: int  # of the next text; they go down
    done: int
    total: int

    @property
    def progress(self) -> IndexProgress:
        if self.sessions_before is None and self.messages_before is None:
            return IndexProgress(is_complete=True, percent=100)
        return IndexProgress(is_complete=False, percent=min(99, 100 * self.done // max(1, self.total)))


@dataclass(frozen=True, slots=True, kw_only=True)
class EarlierText:
    """A title or a message from before the upgrade."""

    id: str
    user_id: str
    session_id: str
    message_id: str | None
    text: str  # empty if it is not searched


class SearchRows:
    """Statements about the search index, in one transaction."""

    def __init__(self, statements: Statements) -> None:
        self._statements = statements

    async def add_message(self, message: Message, user_id: str) -> None:
        if message.role in SEARCHED_ROLES:
            await self._add([_row(user_id, message.session_id, message.id, message.content)])

    async def add_titles(self, titles: Sequence[tuple[str, str, str]]) -> None:
        """Index the titles of new sessions: user, session and title."""
        await self._add([_row(user_id, session_id, None, title) for user_id, session_id, title in titles])

    async def replace_title(self, user_id: str, session_id: str, title: str) -> None:
        await self._statements.fetch("forget_search_title", {"session_id": session_id})
        await self.add_titles([(user_id, session_id, title)])

    async def find(self, user_id: str, terms: Sequence[str], before: int, most: int, *, is_title: bool) -> list[Found]:
        """Return a user's texts that have all of these terms, the latest first."""
        await self._statements.fetch("prepare_search", {})
        params: Params = {
            "user_id": user_id,
            "terms": self._all_of([_scope(user_id, is_title=is_title), *terms]),
            "before": before,
            "most": most,
        }
        return FOUND.read_all(await self._statements.fetch("search_titles" if is_title else "search_messages", params))

    async def indexed(self) -> Indexed:
        [row] = await self._statements.fetch("search_progress", {})
        return Indexed(**row)

    async def earlier_titles(self, before: str, most: int) -> list[EarlierText]:
        rows = await self._statements.fetch("titles_before", {"before": before, "most": most})
        return [
            EarlierText(id=row["id"], user_id=row["user_id"], session_id=row["id"], message_id=None, text=row["title"])
            for row in rows
        ]

    async def earlier_messages(self, before: str, most: int) -> list[EarlierText]:
        params = {"before": before, "most": most, "most_characters": MAX_SEARCHED}
        return [
            EarlierText(
                id=row["id"],
                user_id=row["user_id"],
                session_id=row["session_id"],
                message_id=row["id"],
                text=row["content"] if row["role"] in SEARCHED_ROLES else "",
            )
            for row in await self._statements.fetch("messages_before", params)
        ]

    async def add_earlier(self, rows: Sequence[Params], now: Indexed, done_before: int) -> bool:
        """Add rows of earlier texts and note how far it goes; False if another node was first."""
        moved = {
            "sessions_before": now.sessions_before,
            "messages_before": now.messages_before,
            "next_number": now.next_number,
            "done": now.done,
            "done_before": done_before,
        }
        if not await self._statements.fetch("move_search_progress", moved):
            return False
        await self._statements.fetch_many("add_earlier_search_texts", rows)
        return True

    async def _add(self, rows: Sequence[Params | None]) -> None:
        await self._statements.fetch_many("add_search_texts", [row for row in rows if row is not None])

    def _all_of(self, terms: Sequence[str]) -> str:
        """Return the query for texts with all of these; no term contains a quote."""
        if self._statements.dialect == "sqlite":
            return " AND ".join(f'"{term}"' for term in terms)
        return " & ".join(f"'{term}'" for term in terms)


def rows_of(texts: Sequence[EarlierText], last_number: int) -> Sequence[Params]:
    """Make the rows of texts that are given the latest first, numbered down from a number; in ascending order.

    SQLite writes its index to the file whenever a number is lower than the one before.
    """
    found = (_row(each.user_id, each.session_id, each.message_id, each.text) for each in texts)
    kept = [row for row in found if row is not None]
    return [{**row, "number": last_number - place} for place, row in enumerate(kept)][::-1]


def _row(user_id: str, session_id: str, message_id: str | None, text: str) -> Params | None:
    """Make the row of a text, if there is anything in it to search."""
    terms = terms_of(text)
    if not terms:
        return None
    scope = _scope(user_id, is_title=message_id is None)
    return {
        "user_id": user_id,
        "session_id": session_id,
        "message_id": message_id,
        "terms": " ".join([scope, *sorted(terms)]),
    }


def _scope(user_id: str, *, is_title: bool) -> str:
    """Return a term that all titles, or all messages, of a user have: others' texts do not slow a search down."""
    return f"{'title' if is_title else 'message'}-{user_id}"
