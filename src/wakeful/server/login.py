"""Login of a browser: a one-time link is exchanged for a cookie and a secret in the page's local storage.

A cookie is sent to all servers on its host, whatever the port, so it is not enough by itself. Local storage belongs to
the page's origin, including the port; the page sends the secret in a header.

Opening the link shows a page that sends the code with a POST request, so that programs which preview links do not use
it up.
"""

from base64 import b64encode
from hashlib import sha256
from html import escape
from typing import Annotated, Any

from fastapi import APIRouter, Form, Query, Request
from fastapi.responses import HTMLResponse, Response

from wakeful.domain.people.accounts import BROWSER_LASTS, NEW_LINK, WrongPass
from wakeful.server.auth import AccountsDep, Reader, TriesDep
from wakeful.server.errors import RESPONSES
from wakeful.server.gate import COOKIE, SECURE_COOKIE
from wakeful.server.rest.shapes import Done, Shape
from wakeful.server.routes import DoorRoute

router = APIRouter(route_class=DoorRoute, tags=["login"])

STORAGE_KEY = "wakeful-page-secret"  # web/src/api/secret.ts reads it

# Local storage is tested before the code is sent, because the code works only once.
_SEND = f"""
const form = document.forms[0], said = document.querySelector("[role=alert]");
const logIn = async () => {{
  try {{
    localStorage.setItem("{STORAGE_KEY}", localStorage.getItem("{STORAGE_KEY}") ?? "");
  }} catch {{
    throw new Error("This browser does not store data for this page. Allow it, then open the link again.");
  }}
  const answer = await fetch("/login", {{ method: "POST", body: new URLSearchParams(new FormData(form)) }});
  const body = await answer.json();
  if (!answer.ok) throw new Error([body.error.message, body.error.hint].filter(Boolean).join(" "));
  localStorage.setItem("{STORAGE_KEY}", body.page_secret);
  location.replace("/");
}};
form.addEventListener("submit", (event) => {{
  event.preventDefault();
  said.textContent = "";
  logIn().catch((error) => (said.textContent = error.message));
}});
form.requestSubmit();
"""
_SEND_HASH = b64encode(sha256(_SEND.encode()).digest()).decode()
_HEADERS = {
    "Content-Security-Policy": f"default-src 'none'; script-src 'sha256-{_SEND_HASH}'; connect-src 'self'; "
    "form-action 'none'; frame-ancestors 'none'; base-uri 'none'",
    "Cache-Control": "no-store",
}
_PAGE = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<meta name="robots" content="noindex">
<title>Wakeful</title>
<main>
<h1>Wakeful</h1>
{body}
</main>
</html>
"""
_FORM = """<form>
<input type="hidden" name="code" value="{code}">
<button>Log in</button>
</form>
<p role="alert"></p>
<noscript><p>Wakeful's page needs JavaScript.</p></noscript>
<script>{script}</script>"""

_MAX_CODE = 200

# Errors are JSON here too.
_SHAPE = {"application/json": {"schema": {"$ref": "#/components/schemas/ErrorAnswer"}}}
_FAILURES: dict[int | str, dict[str, Any]] = {
    status: {"description": RESPONSES[status]["description"], "content": _SHAPE} for status in RESPONSES
}


class LoggedIn(Shape):
    """The secret to send as `X-Wakeful-Page`, together with the cookie. It is shown only here."""

    page_secret: str


@router.get("/login", response_class=HTMLResponse, responses=_FAILURES)
async def show_login(code: Annotated[str | None, Query(max_length=_MAX_CODE)] = None) -> HTMLResponse:
    """Show the page that sends the code of a login link. The code can still be used afterwards."""
    body = _FORM.format(code=escape(code), script=_SEND) if code else f"<p>{escape(NEW_LINK)}</p>"
    return HTMLResponse(_PAGE.format(body=body), headers=_HEADERS)


@router.post("/login")
async def log_in(
    request: Request,
    response: Response,
    accounts: AccountsDep,
    tries: TriesDep,
    code: Annotated[str, Form(min_length=1, max_length=_MAX_CODE)],
) -> LoggedIn:
    """Exchange the code of a login link, once, for a cookie and its secret."""
    client = request.client.host if request.client else ""
    name = SECURE_COOKIE if _is_secure(request) else COOKIE
    made = await accounts.log_in(code, browser=_name(request), instead_of=request.cookies.get(name))
    if made is None:
        tries.check(client)
        tries.count(client)
        raise WrongPass("login")
    _set_cookie(response, name, made.cookie, int(BROWSER_LASTS.total_seconds()))
    return LoggedIn(page_secret=made.page_secret)


@router.post("/logout")
async def log_out(request: Request, caller: Reader, accounts: AccountsDep, response: Response) -> Done:
    """Log this browser out: its cookie and its page's secret become invalid."""
    await accounts.log_out(caller)
    for name in (COOKIE, SECURE_COOKIE):
        if name in request.cookies:
            _set_cookie(response, name, "", 0)
    return Done()


def _set_cookie(response: Response, name: str, value: str, max_age: int) -> None:
    # Browsers refuse a __Host- cookie that is not Secure, has a Domain, or has another path than /.
    is_secure = name == SECURE_COOKIE
    response.set_cookie(name, value, max_age=max_age, path="/", httponly=True, samesite="strict", secure=is_secure)


def _is_secure(request: Request) -> bool:
    # TLS may end at a proxy. Then only the Origin shows it, which the gate has checked.
    return request.url.scheme == "https" or request.headers.get("origin", "").startswith("https://")


def _name(request: Request) -> str:
    """Return the name of the browser, for the list of tokens."""
    agent = request.headers.get("user-agent", "browser")
    return "".join(character for character in agent if character.isprintable())[:100] or "browser"
