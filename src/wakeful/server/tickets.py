"""One-time tickets in an address, for what can send no header: a browser's sockets, downloads and pictures."""

from urllib.parse import parse_qsl, unquote, urlencode, urlsplit

from starlette.datastructures import QueryParams
from starlette.types import Scope


def take_ticket(scope: Scope) -> str | None:
    """Take the ticket out of an address, so that neither a route nor a log sees it."""
    if scope["type"] != "websocket" and scope["method"] != "GET":
        return None
    query = QueryParams(scope["query_string"])
    if "ticket" not in query:
        return None
    left = [(key, value) for key, value in query.multi_items() if key != "ticket"]
    scope["query_string"] = str(QueryParams(left)).encode("ascii")
    return query["ticket"]


def target_of(scope: Scope) -> str:
    """Return what a request asks for, in the form that a download's ticket is bound to."""
    return _canonical(scope["path"], scope["query_string"].decode("latin-1"))


def target_in(address: str) -> str:
    """Return the same of a path with its query, as a client writes it."""
    parts = urlsplit(address)
    return _canonical(unquote(parts.path), parts.query)


def with_ticket(address: str, ticket: str) -> str:
    return f"{address}{'&' if '?' in address else '?'}ticket={ticket}"


def _canonical(path: str, query: str) -> str:
    # Browsers and programs escape characters differently, and mean the same.
    return f"{path}?{urlencode(parse_qsl(query, keep_blank_values=True))}"
