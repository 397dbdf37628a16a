"""Login of a browser: a one-time link or a token is exchanged for a cookie and a secret in the page's local storage.

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
from pydantic import Field

from wakeful.core.errors import Invalid
from wakeful.core.identity import BROWSER_LASTS, WrongLoginToken, WrongPass, WrongProof
from wakeful.http.auth import COOKIE, SECURE_COOKIE, AccountsDep, Reader, TriesDep
from wakeful.http.errors import RESPONSES
from wakeful.http.routes import DoorRoute
from wakeful.http.shapes import Done, RequestBody, Shape
from wakeful.http.tries import Tries

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


# ── The login page ────────────────────────────────────────────────────────────────────────────────────────────────────

# It works without the files of the web page, and looks like it.


STORAGE_KEY = "wakeful-page-secret"  # web/src/api/secret.ts reads it

# Local storage is tested before anything is sent, because a code works only once.
_SCRIPT = f"""
try {{
  document.documentElement.dataset.theme = localStorage.getItem("wakeful.theme") ?? "auto"; // as chosen in Settings
}} catch {{}}
const base = document.documentElement.dataset.base; // the path under which a proxy has the server
const said = document.querySelector("[role=alert]");
const logIn = async (form) => {{
  try {{
    localStorage.setItem("{STORAGE_KEY}", localStorage.getItem("{STORAGE_KEY}") ?? "");
  }} catch {{
    throw new Error("This browser does not store data for this page. Allow it, then try again.");
  }}
  const answer = await fetch(`${{base}}/login`, {{ method: "POST", body: new URLSearchParams(new FormData(form)) }});
  const body = await answer.json();
  if (!answer.ok) {{
    form.hidden = "code" in form.elements;
    throw new Error(body.error.message);  // what to do is below
  }}
  localStorage.setItem("{STORAGE_KEY}", body.page_secret);
  location.replace(`${{base}}/`);
}};
for (const form of document.forms)
  form.addEventListener("submit", (event) => {{
    event.preventDefault();
    said.textContent = "";
    logIn(form).catch((error) => (said.textContent = error.message));
  }});
document.forms.link?.requestSubmit();
"""
_STYLE = """
:root { color-scheme: light dark; font: 15px/1.55 system-ui, -apple-system, "Segoe UI", Roboto, sans-serif;
  background: light-dark(#fbfaf8, #16171a); color: light-dark(#22252a, #e8e6e1); }
:root[data-theme=light] { color-scheme: light; }
:root[data-theme=dark] { color-scheme: dark; }
* { box-sizing: border-box; }
body { margin: 0; }
main { display: grid; gap: 16px; max-width: 30rem; margin: 10vh auto 0; padding: 24px; }
h1, h2, p { margin: 0; }
h1 { font-size: 1.5rem; }
h2 { font-size: 1rem; }
form { display: grid; gap: 8px; }
form[hidden] { display: none; }
label { font-weight: 520; }
input, button { font: inherit; min-height: 38px; padding: 6px 12px; border-radius: 7px; width: 100%; }
input { border: 1px solid light-dark(#8d877d, #757b86); background: light-dark(#fff, #1f2126); color: inherit; }
button { border: 0; background: light-dark(#276456, #7cc7b5); color: light-dark(#fff, #10201c); font-weight: 520;
  cursor: pointer; }
:focus-visible { outline: 2px solid light-dark(#276456, #7cc7b5); outline-offset: 2px; }
code { font-family: ui-monospace, "Liberation Mono", Menlo, monospace; font-size: 0.92em; padding: 1px 5px;
  border-radius: 4px; background: light-dark(#f3f1ed, #26292f); overflow-wrap: anywhere; }
[role=alert]:not(:empty) { padding: 12px 16px; border-radius: 7px; background: light-dark(#fbe9e6, #3a2120);
  color: light-dark(#a8261c, #f09a92); }
.soft { color: light-dark(#5f6268, #a3a7ae); font-size: 0.86rem; }
"""


def _hash(text: str) -> str:
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"


HEADERS = {
    "Content-Security-Policy": f"default-src 'none'; script-src {_hash(_SCRIPT)}; style-src {_hash(_STYLE)}; "
    "connect-src 'self'; img-src 'self'; form-action 'none'; frame-ancestors 'none'; base-uri 'none'",
    "Cache-Control": "no-store",
}
# The same as web/public/icon.svg, which is missing where the page is not built.
_ICON = """<svg width="48" height="48" aria-hidden="true" viewBox="0 0 32 32">
<rect width="32" height="32" rx="8" fill="#2f6f62"/>
<circle cx="16" cy="17" r="8" fill="none" stroke="#fff" stroke-width="2.4"/>
<path d="M16 12.5V17l3 2" fill="none" stroke="#fff" stroke-width="2.4" stroke-linecap="round" stroke-linejoin="round"/>
<path d="M7.5 9.5 10 7M24.5 9.5 22 7" stroke="#fff" stroke-width="2.4" stroke-linecap="round"/>
</svg>"""
_PAGE = """<!doctype html>
<html lang="en" data-base="{base}">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex">
<link rel="icon" href="{base}/ui/icon.svg" type="image/svg+xml">
<title>Log in · Wakeful</title>
<style>{style}</style>
<main>
{icon}
<h1>Log in to Wakeful</h1>
<noscript><p role="status">Wakeful's page needs JavaScript.</p></noscript>
<p role="alert"></p>
{link}
<form name="token">
<label for="token">Token</label>
<input id="token" name="token" type="password" required maxlength="1000" autocomplete="current-password"
 aria-describedby="where">
<p id="where" class="soft">The owner's token is the value of <code>WAKEFUL_TOKEN</code>. Without that setting it is in
the file <code>token</code> in the config directory (<code>~/.config/wakeful</code> on Linux).</p>
<button>Log in</button>
</form>
<h2>Or with a link</h2>
<p>Run <code>wakeful login</code> on the machine that runs the server, and open the link it prints. The server also
prints one each time it starts. A link works once, for ten minutes.</p>
</main>
<script>{script}</script>
</html>
"""
_LINK = """<form name="link">
<input type="hidden" name="code" value="{code}">
<button>Log in with this link</button>
</form>"""


def login_page(code: str | None, base_path: str = "") -> str:
    """Return the page with a field for a token; with the code of a login link, it sends that first."""
    link = _LINK.format(code=escape(code)) if code else ""
    return _PAGE.format(base=escape(base_path), style=_STYLE, script=_SCRIPT, icon=_ICON, link=link)
