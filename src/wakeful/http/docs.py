"""The API reference at /docs: all routes on one page, without scripts or files from other hosts."""

from base64 import b64encode
from hashlib import sha256
from html import escape
from typing import Any

from fastapi import FastAPI
from fastapi.responses import HTMLResponse

_STYLE = (
    "body{font:15px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color-scheme:light dark}"
    "code{font-size:14px}td{padding:.15rem 1rem .15rem 0;vertical-align:top}td:first-child{white-space:nowrap}"
    "h2{margin:2rem 0 .5rem;font-size:1.1rem;text-transform:capitalize}"
)
_HEADERS = {
    "Content-Security-Policy": (
        f"default-src 'none'; style-src 'sha256-{b64encode(sha256(_STYLE.encode()).digest()).decode()}'; "
        "frame-ancestors 'none'; base-uri 'none'"
    )
}


def install_docs(app: FastAPI) -> None:
    """Add /docs. FastAPI's own page would load scripts from another host."""

    @app.get("/docs", include_in_schema=False)
    async def show_routes() -> HTMLResponse:  # pyright: ignore[reportUnusedFunction]
        return HTMLResponse(_write(app.openapi()), headers=_HEADERS)


def _write(described: dict[str, Any]) -> str:
    groups: dict[str, list[str]] = {}
    for path, operations in described["paths"].items():
        for method, operation in operations.items():
            row = (
                f"<tr><td><code>{method.upper()} {escape(path)}</code></td><td>{escape(_describe(operation))}</td></tr>"
            )
            groups.setdefault(operation.get("tags", ["other"])[0], []).append(row)
    tables = "".join(f"<h2>{escape(name)}</h2><table>{''.join(rows)}</table>" for name, rows in sorted(groups.items()))
    title = f"{escape(described['info']['title'])} {escape(described['info']['version'])}: API"
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
        f"<title>{title}</title><style>{_STYLE}</style><h1>{title}</h1>"
        "<p>All fields: <code>GET /openapi.json</code>. The frames of the sockets: "
        f"<code>GET /ws/schema</code>.</p>{tables}</html>"
    )


def _describe(operation: dict[str, Any]) -> str:
    return operation.get("description") or operation.get("summary", "")
