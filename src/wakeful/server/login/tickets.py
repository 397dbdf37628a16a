"""One-time tickets in URLs, for requests of browsers that cannot have headers: sockets, downloads and images."""

from urllib.parse import parse_qsl, unquote, urlencode, urlsplit

from starlette.datastructures import QueryParams
from starlette.types import Scope


def take_ticket(scope: Scope) -> str | None:
    """Remove the ticket from a URL, so that neither routes nor logs see it, and return it."""
    if scope["type"] != "websocket" and scope["method"] != "GET":
        return None
    query = QueryParams(scope["query_string"])
    if "ticket" not in query:
        return None
    left = [(key, value) for key, value in query.multi_items() if key != "ticket"]
    scope["query_string"] = str(QueryParams(left)).encode("ascii")
    return query["ticket"]


def target_of(scope: Scope) -> str:
    """Return the path and query of a request, in the form that a download ticket is bound to."""
    return _canonical(scope["path"], scope["query_string"].decode("latin-1"))


def target_in(address: str) -> str:
    """Return the same for a path with a query as a client writes it."""
    parts = urlsplit(address)
    return _canonical(unquote(parts.path), parts.query)


def with_ticket(address: str, ticket: str) -> str:
    return f"{address}{'&' if '?' in address else '?'}ticket={ticket}"


def _canonical(path: str, query: str) -> str:
    # Clients differ in which characters they escape.
    return f"{path}?{urlencode(parse_qsl(query, keep_blank_values=True))}"
