"""Error responses, all in one form: `{"error": {"code", "message", "hint"?, "field"?}}`.

Under `/v1` they have OpenAI's form instead: `{"error": {"message", "type", "param", "code"}}`.
"""

import logging
from collections.abc import Mapping
from reprlib import Repr
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel
from starlette.exceptions import HTTPException

from wakeful.core.addresses import hide_login
from wakeful.core.errors import Conflict, Forbidden, Invalid, LimitReached, NotFound, Unavailable, WakefulError
from wakeful.core.identity import NotSignedIn
from wakeful.core.records import StillBusy
from wakeful.core.resources import find_shortage
from wakeful.core.texts import problem_in_words

log = logging.getLogger(__name__)

STATUSES: Mapping[type[WakefulError], int] = {
    Invalid: 400,
    NotSignedIn: 401,
    Forbidden: 403,
    NotFound: 404,
    Conflict: 409,
    LimitReached: 429,
    Unavailable: 503,
}

_CODES = {
    400: "unreadable_body",
    404: "not_found",
    405: "method_not_allowed",
    408: "request_timeout",
    413: "body_too_large",
}
_MAX_SHOWN = 100  # characters of an invalid value


class ErrorDetail(BaseModel):
    """An error: what is wrong, the value, and the next step."""

    code: str
    message: str
    hint: str | None = None
    field: str | None = None


class OpenAIErrorDetail(BaseModel):
    """An error in OpenAI's form. `message` ends with the next step."""

    message: str
    type: str
    param: str | None
    code: str


class OpenAIErrorAnswer(BaseModel):
    """The body of an error response under /v1."""

    error: OpenAIErrorDetail


class ErrorAnswer(BaseModel):
    """The body of every error response."""

    error: ErrorDetail


# Error responses of every route, for `FastAPI(responses=…)`.
RESPONSES: dict[int | str, dict[str, Any]] = {
    "4XX": {"model": ErrorAnswer, "description": "The request was refused, with the reason."},
    "5XX": {"model": ErrorAnswer, "description": "The server failed."},
}


# The same for routes under /v1.
OPENAI_RESPONSES: dict[int | str, dict[str, Any]] = {
    kind: {**described, "model": OpenAIErrorAnswer} for kind, described in RESPONSES.items()
}
_OPENAI_TYPES = {
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    409: "conflict_error",
    429: "rate_limit_error",
}


def install(app: FastAPI) -> None:
    """Register the exception handlers."""
    app.add_exception_handler(WakefulError, _answer_ours)
    app.add_exception_handler(RequestValidationError, _answer_validation)
    app.add_exception_handler(HTTPException, _answer_http)
    app.add_exception_handler(OSError, _answer_system)
    app.add_exception_handler(Exception, _answer_unexpected)


def status_of(error: WakefulError) -> int:
    return next((status for kind, status in STATUSES.items() if isinstance(error, kind)), 400)


def answer(error: WakefulError, path: str, *, headers: Mapping[str, str] | None = None) -> JSONResponse:
    """Return the response to one of our errors, for a request of this path."""
    headers = dict(headers or {})
    if isinstance(error, NotSignedIn):
        headers["WWW-Authenticate"] = "Bearer"
    if isinstance(error, LimitReached | StillBusy) and error.seconds is not None:
        headers["Retry-After"] = str(error.seconds)
    status = status_of(error)
    return shape(status, error.code, error.message, path, hint=error.hint, field=error.field, headers=headers)


def shape(
    status: int,
    code: str,
    message: str,
    path: str,
    *,
    hint: str | None = None,
    field: str | None = None,
    headers: Mapping[str, str] | None = None,
) -> JSONResponse:
    """Return an error response, in the form for its path; fields that are None are left out."""
    if is_openai(path):
        return _openai_shape(status, code, message if hint is None else f"{message} {hint}", field, headers)
    fields = {"code": code, "message": message, "hint": hint, "field": field}
    # JSON can contain a lone surrogate, which UTF-8 cannot.
    detail = {key: value.encode("utf-8", "replace").decode() for key, value in fields.items() if value is not None}
    return JSONResponse({"error": detail}, status_code=status, headers=headers)


def is_openai(path: str) -> bool:
    """Return whether a path is one of OpenAI's protocol."""
    return path == "/v1" or path.startswith("/v1/")


def openai_error(status: int, code: str, message: str, field: str | None = None) -> dict[str, Any]:
    """Return an error in OpenAI's form."""
    kind = "server_error" if status >= 500 else _OPENAI_TYPES.get(status, "invalid_request_error")
    return {"error": {"message": message, "type": kind, "param": field, "code": code}}


def _openai_shape(
    status: int, code: str, message: str, field: str | None, headers: Mapping[str, str] | None
) -> JSONResponse:
    message = message.encode("utf-8", "replace").decode()
    field = None if field is None else field.encode("utf-8", "replace").decode()
    return JSONResponse(openai_error(status, code, message, field), status_code=status, headers=headers)


async def _answer_ours(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, WakefulError)
    return answer(error, request.scope["path"])


async def _answer_validation(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, RequestValidationError)
    path_of_request = request.scope["path"]
    status = 400 if is_openai(path_of_request) else 422
    first: dict[str, Any] = error.errors()[0]
    place, *path = first["loc"]
    if first["type"] == "json_invalid":
        problem = f"The body is not JSON: {first['ctx']['error']} at character {path[0]}."
        return shape(status, "invalid_json", problem, path_of_request)
    field = ".".join(str(step) for step in path) or str(place)
    message = f"`{field}` {problem_in_words(first['type'], first['msg'])}"
    message += "." if first["type"] == "missing" else f", got {_show(first['input'])}."
    return shape(status, "invalid_value", message, path_of_request, field=field)


class _Short(Repr):
    def __init__(self) -> None:
        super().__init__()
        self.maxlist = self.maxdict = 20
        self.maxstring = self.maxother = self.maxlong = _MAX_SHOWN

    def repr_str(self, x: str, level: int) -> str:
        return super().repr_str(hide_login(x), level)


def _show(value: object) -> str:
    """Return the beginning of a value's repr, which may have many megabytes."""
    if isinstance(value, str):
        value = hide_login(value)
    shown = repr(value[: _MAX_SHOWN + 1]) if isinstance(value, str | bytes) else _Short().repr(value)
    return shown if len(shown) <= _MAX_SHOWN else shown[:_MAX_SHOWN] + "…"


async def _answer_http(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, HTTPException)
    status = error.status_code
    takes = (error.headers or {}).get("Allow", "other methods")
    messages = {
        404: f"There is no route {request.url.path!r}. GET /docs lists all routes.",
        405: f"{request.url.path!r} does not take {request.method}. It takes {takes}.",
    }
    code = _CODES.get(status, f"http_{status}")
    return shape(status, code, messages.get(status, str(error.detail)), request.scope["path"], headers=error.headers)


async def _answer_system(request: Request, error: Exception) -> JSONResponse:
    """Answer a lack of disk space, memory or descriptors, without the paths in the system's message."""
    lacks = find_shortage(error)
    if lacks is None:
        raise error
    log.warning("request lacks something", extra={"problem": lacks.message})
    return answer(lacks, request.scope["path"])


async def _answer_unexpected(request: Request, _error: Exception) -> JSONResponse:
    # Starlette raises it again once this is sent, and the server logs it; the client gets no internals.
    message = "An unexpected error happened. The server's log has the details."
    return shape(500, "internal_error", message, request.scope["path"])
