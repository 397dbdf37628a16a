"""Requests whose failure does not end the command."""

import json
from http.client import HTTPException
from typing import Any, NamedTuple, cast
from urllib.parse import urlencode

from wakeful.cli.remote.connection import TIMEOUT, explain_failure, open_connection
from wakeful.cli.remote.target import Target


class NotReached(Exception):
    """No server answers; the message says why, and what to do."""


class Answer(NamedTuple):
    """A response: its status, its JSON, and the server's time in its header."""

    status: int
    body: Any  # None if it is not JSON
    date: str | None

    @property
    def is_ok(self) -> bool:
        return 200 <= self.status < 300 and self.body is not None

    @property
    def fields(self) -> dict[str, Any]:
        """The JSON object of the response; empty if there is none."""
        return cast("dict[str, Any]", self.body) if isinstance(self.body, dict) else {}

    @property
    def message(self) -> str:
        """The server's message about a refused request."""
        try:
            error = self.body["error"]
            return " ".join(filter(None, (error["message"], error.get("hint"))))
        except (TypeError, KeyError):
            return f"It answered {self.status} without an explanation."


def ask(target: Target, method: str, path: str, *, body: Any = None, timeout: float = TIMEOUT, **query: Any) -> Answer:
    """Send a request and return the response, whatever its status is. Raises NotReached without one."""
    asked = {name: str(value) for name, value in query.items() if value is not None}
    headers = {"User-Agent": "wakeful-cli"} | ({} if body is None else {"Content-Type": "application/json"})
    connection = open_connection(target, timeout)
    try:
        headers["Authorization"] = target.authorize()
        place = f"{target.parts.path}{path}" + (f"?{urlencode(asked)}" if asked else "")
        connection.request(method, place, None if body is None else json.dumps(body), headers)
        response = connection.getresponse()
        text, date = response.read(), response.headers.get("Date")
    except (OSError, HTTPException) as error:
        raise NotReached(explain_failure(error, target)) from error
    finally:
        connection.close()
    try:
        return Answer(response.status, json.loads(text), date)
    except ValueError:
        return Answer(response.status, None, date)
