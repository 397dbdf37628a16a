"""Login of a browser: a one-time link or a token is exchanged for a cookie and a secret in the page's local storage.

A cookie is sent to all servers on its host, whatever the port, so it is not enough by itself. Local storage belongs to
the page's origin, including the port; the page sends the secret in a header.

Opening the link shows a page that sends the code with a POST request, so that programs which preview links do not use
it up.
"""

from typing import Annotated, Any

from fastapi import APIRouter, Form, Query, Request
from fastapi.responses import HTMLResponse, Response
from pydantic import Field

from wakeful.domain.errors import Invalid
from wakeful.domain.people.accounts import BROWSER_LASTS, WrongLoginToken, WrongPass, WrongProof
from wakeful.server.auth import AccountsDep, Reader, TriesDep
from wakeful.server.errors import RESPONSES
from wakeful.server.gate import COOKIE, SECURE_COOKIE
from wakeful.server.login.attempts import Tries
from wakeful.server.login.page import HEADERS, login_page
from wakeful.server.rest.shapes import Done, RequestBody, Shape
from wakeful.server.routes import DoorRoute

router = APIRouter(route_class=DoorRoute, tags=["login"])

_MAX_CODE = 200
_MAX_TOKEN = 1_000

# Errors are JSON here too.
_SHAPE = {"application/json": {"schema": {"$ref": "#/components/schemas/ErrorAnswer"}}}
_FAILURES: dict[int | str, dict[str, Any]] = {
    status: {"description": RESPONSES[status]["description"], "content": _SHAPE} for status in RESPONSES
}


class NothingToLogInWith(Invalid):
    code = "nothing_to_log_in_with"
    text = "The form must have either `code`, from a login link, or `token`."


class LoggedIn(Shape):
    """The secret to send as `X-Wakeful-Page`, together with the cookie. It is shown only here."""

    page_secret: str


class Proof(RequestBody):
    """That the person at a browser that is logged in is still its user."""

    proof: Annotated[
        str, Field(min_length=1, max_length=_MAX_TOKEN, description="The code of a login link, or a token.")
    ]


@router.get("/login", response_class=HTMLResponse, responses=_FAILURES)
async def show_login(request: Request, code: Annotated[str | None, Query(max_length=_MAX_CODE)] = None) -> HTMLResponse:
    """Show the login page: it sends the code of a login link, which showing does not use up, or asks for a token."""
    return HTMLResponse(login_page(code, request.app.state.base_path), headers=HEADERS)


@router.post("/login")
async def log_in(
    request: Request,
    response: Response,
    accounts: AccountsDep,
    tries: TriesDep,
    code: Annotated[str | None, Form(min_length=1, max_length=_MAX_CODE)] = None,
    token: Annotated[str | None, Form(min_length=1, max_length=_MAX_TOKEN)] = None,
) -> LoggedIn:
    """Exchange the code of a login link, once, or a token with the scope admin, for a cookie and its secret."""
    if (code is None) == (token is None):
        raise NothingToLogInWith
    name = SECURE_COOKIE if _is_secure(request) else COOKIE
    earlier = request.cookies.get(name)
    browser = browser_name(request.headers.get("user-agent", "browser"))
    if token is not None:
        made = await accounts.log_in_with_token(token.strip(), browser=browser, instead_of=earlier)
    else:
        made = await accounts.log_in(code or "", browser=browser, instead_of=earlier)
    if made is None:
        _count(request, tries)
        raise WrongPass("login") if token is None else WrongLoginToken
    _set_cookie(response, name, made.cookie, int(BROWSER_LASTS.total_seconds()))
    return LoggedIn(page_secret=made.page_secret)


@router.post("/login/renew")
async def renew_login(request: Request, caller: Reader, accounts: AccountsDep, tries: TriesDep, asked: Proof) -> Done:
    """Let this browser's login count as new, given a login code or a token with the scope admin of the same user."""
    try:
        await accounts.renew_login(caller, asked.proof)
    except WrongProof:
        _count(request, tries)
        raise
    return Done()


@router.post("/logout")
async def log_out(request: Request, caller: Reader, accounts: AccountsDep, response: Response) -> Done:
    """Log this browser out: its cookie and its page's secret become invalid."""
    await accounts.log_out(caller)
    for name in (COOKIE, SECURE_COOKIE):
        if name in request.cookies:
            _set_cookie(response, name, "", 0)
    return Done()


def _count(request: Request, tries: Tries) -> None:
    client = request.client.host if request.client else ""
    tries.check(client)
    tries.count(client)


def _set_cookie(response: Response, name: str, value: str, max_age: int) -> None:
    # Browsers refuse a __Host- cookie that is not Secure, has a Domain, or has another path than /.
    is_secure = name == SECURE_COOKIE
    response.set_cookie(name, value, max_age=max_age, path="/", httponly=True, samesite="strict", secure=is_secure)


def _is_secure(request: Request) -> bool:
    # TLS may end at a proxy. Then only the Origin shows it, which the gate has checked.
    return request.url.scheme == "https" or request.headers.get("origin", "").startswith("https://")


# In the User-Agent, which names several browsers for old websites: the first of these counts.
_BROWSERS = {"Edg": "Edge", "OPR/": "Opera", "Firefox/": "Firefox", "Chrome/": "Chrome", "Safari/": "Safari"}
_SYSTEMS = {
    "iPhone": "iPhone",
    "iPad": "iPad",
    "Android": "Android",
    "CrOS": "ChromeOS",
    "Windows": "Windows",
    "Mac OS X": "macOS",
    "Linux": "Linux",
}


def browser_name(user_agent: str) -> str:
    """Return what to call a browser in the list of tokens, such as "Firefox on Linux"."""
    browser, system = (
        next((name for mark, name in table.items() if mark in user_agent), None) for table in (_BROWSERS, _SYSTEMS)
    )
    if browser and system:
        return f"{browser} on {system}"
    return "".join(character for character in user_agent if character.isprintable())[:100] or "browser"
