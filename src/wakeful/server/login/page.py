"""The login page: it works without the files of the web page, and looks like it."""

from base64 import b64encode
from hashlib import sha256
from html import escape

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
