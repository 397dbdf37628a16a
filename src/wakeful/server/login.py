"""The login of a browser: a one-time link becomes a cookie.

Opening the link only shows a page that sends the code on, so the programs that look at every link before a person does
do not use it up.
"""

from base64 import b64encode
from hashlib import sha256
from html import escape
from typing import Annotated, Any

from fastapi import APIRouter, Form, Query, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from wakeful.domain.accounts import BROWSER_LASTS, TooManyTries, WrongPass
from wakeful.server.auth import AccountsDep, Reader, TriesDep
from wakeful.server.errors import RESPONSES, status_of
from wakeful.server.gate import COOKIE
from wakeful.server.rest.shapes import Done
from wakeful.server.routes import DoorRoute

router = APIRouter(route_class=DoorRoute, tags=["login"])

_SEND = "document.forms[0].submit()"
_SEND_HASH = b64encode(sha256(_SEND.encode()).digest()).decode()
_HEADERS = {
    "Content-Security-Policy": f"default-src 'none'; script-src 'sha256-{_SEND_HASH}'; form-action 'self'; "
    "frame-ancestors 'none'; base-uri 'none'",
    # Under no-referrer a browser would send the form with the Origin null, which the gate refuses. Of this page's own
    # address, with the code in it, nothing but the origin is passed on.
    "Referrer-Policy": "strict-origin",
    "Cache-Control": "no-store",
}
_PAGE = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<meta name="robots" content="noindex">
<title>Wakeful</title>
<h1>Wakeful</h1>
{body}
</html>
"""
_FORM = """<form method="post" action="/login">
<input type="hidden" name="code" value="{code}">
<button>Log in</button>
</form>
<script>{script}</script>"""
_NO_CODE = "<p>To log in, open the link that the server printed at its start, or ask it for a new one.</p>"

_MOST_CODE = 200

# A person gets a page, a program the one shape, also where things fail.
_SHAPE = {"application/json": {"schema": {"$ref": "#/components/schemas/ErrorAnswer"}}}
_FAILURES: dict[int | str, dict[str, Any]] = {
    status: {"description": RESPONSES[status]["description"], "content": _SHAPE | {"text/html": {}}}
    for status in RESPONSES
}


@router.get("/login", response_class=HTMLResponse, responses=_FAILURES)
async def show_login(code: Annotated[str | None, Query(max_length=_MOST_CODE)] = None) -> HTMLResponse:
    """Show the page that sends the code of a login link on. It uses nothing up."""
    return _page(_FORM.format(code=escape(code), script=_SEND) if code else _NO_CODE)


@router.post(
    "/login",
    status_code=303,
    response_class=Response,
    responses=_FAILURES | {303: {"description": "Logged in; the cookie is set."}},
)
async def log_in(
    request: Request,
    accounts: AccountsDep,
    tries: TriesDep,
    code: Annotated[str, Form(min_length=1, max_length=_MOST_CODE)],
) -> Response:
    """Change the code of a login link for a cookie, once."""
    client = request.client.host if request.client else ""
    try:
        made = await accounts.log_in(code, browser=_name(request))
        if made is None:
            tries.check(client)
            tries.count(client)
            raise WrongPass("login")
    except (TooManyTries, WrongPass) as error:
        if "text/html" not in request.headers.get("accept", ""):
            raise
        return _page(f"<p>{escape(error.message)}</p>", status_of(error))
    response = RedirectResponse("/", status_code=303)
    response.set_cookie(
        COOKIE,
        made.secret,
        max_age=int(BROWSER_LASTS.total_seconds()),
        httponly=True,
        samesite="strict",
        secure=_is_secure(request),
    )
    return response


@router.post("/logout")
async def log_out(caller: Reader, accounts: AccountsDep, response: Response) -> Done:
    """Forget this browser."""
    await accounts.log_out(caller)
    response.delete_cookie(COOKIE, httponly=True, samesite="strict")
    return Done()


def _page(body: str, status: int = 200) -> HTMLResponse:
    return HTMLResponse(_PAGE.format(body=body), status_code=status, headers=_HEADERS)


def _is_secure(request: Request) -> bool:
    # TLS may end at a proxy, and then only the page's own origin, which the gate has checked, tells of it.
    return request.url.scheme == "https" or request.headers.get("origin", "").startswith("https://")


def _name(request: Request) -> str:
    """Say in a few characters which browser it is, for the list of tokens."""
    agent = request.headers.get("user-agent", "browser")
    return "".join(character for character in agent if character.isprintable())[:100] or "browser"
