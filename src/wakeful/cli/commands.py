"""`wakeful context …`: save servers, and choose the one that commands use."""

import re
import sys
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from wakeful.cli.nouns import Commands
from wakeful.cli.options import Asked, read_options
from wakeful.cli.output import WRONG, AsJson, fail, show_done, show_list
from wakeful.cli.server import Server
from wakeful.cli.target import (
    LOCAL,
    Context,
    Contexts,
    Target,
    check_url,
    contexts_path,
    load_contexts,
    local_url,
    read_token_file,
    save_contexts,
)

app = Commands()

Name = Annotated[
    str, typer.Argument(metavar="NAME", help="The name of a saved server, as `wakeful context ls` shows it.")
]
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


@app.command()
def add(
    name: Annotated[str, typer.Argument(help="A name for the server, such as home.")],
    url: Annotated[str, typer.Argument(metavar="URL", help="Its address, such as https://wakeful.example.org.")],
    as_json: AsJson = False,
) -> None:
    """Save a server and a token for it, after trying them. The token is asked for, or read from stdin or --token-file.

    --ca FILE is saved with it, and --insecure, which http:// to another machine needs.
    """
    asked, contexts = read_options(), load_contexts()
    if not _NAME.fullmatch(name) or name == LOCAL:
        fail(
            f"{name!r} cannot be a name: use up to 64 letters, digits, '.', '-' and '_'; 'local' is this machine.",
            WRONG,
        )
    if name in contexts.saved:
        fail(f"There is a context {name!r} already. Remove it first with `wakeful context rm {name}`.")
    context = Context(
        url=check_url(url, is_insecure=asked.insecure),
        token=_ask_token(asked),
        ca=None if asked.ca is None else str(asked.ca.absolute()),
        insecure=asked.insecure,
    )
    me = _try(context)
    save_contexts(replace(contexts, saved=contexts.saved | {name: context}))
    done = {"name": name, "url": context.url, "user": me["user"]["name"], "scope": me["scope"]}
    told = f"Saved {name}: {context.url}, as {done['user']} with the scope {done['scope']}."
    show_done(done, f"{told} Use it with `wakeful context use {name}`.", as_json)


@app.command(name="ls")
def list_contexts(as_json: AsJson = False) -> None:
    """List saved servers; * marks the one that commands use. Tokens are not shown."""
    contexts = load_contexts()
    rows: list[dict[str, Any]] = [{"name": LOCAL, "url": local_url(), "ca": None}]
    rows += [{"name": name, "url": each.url, "ca": each.ca} for name, each in contexts.saved.items()]
    found = {"contexts": [{**row, "current": row["name"] == contexts.current} for row in rows]}
    shown = [{**row, "used": "*" if row["current"] else ""} for row in found["contexts"]]
    show_list(found, shown, ("used", "name", "url", "ca"), empty="", as_json=as_json)


@app.command()
def use(name: Name, as_json: AsJson = False) -> None:
    """Let commands use this server from now on; `local` is this machine's own."""
    contexts = load_contexts()
    url = local_url() if name == LOCAL else contexts.get(name).url
    save_contexts(replace(contexts, current=name))
    where = "the server of this machine" if name == LOCAL else f"{name} ({url})"
    show_done({"name": name, "url": url}, f"Commands now use {where}.", as_json)


@app.command()
def rm(name: Name, as_json: AsJson = False) -> None:
    """Forget a server and its token here. The token stays valid until it is revoked on the server."""
    contexts = load_contexts()
    contexts.get(name)
    saved = {each: kept for each, kept in contexts.saved.items() if each != name}
    is_current = contexts.current == name
    save_contexts(Contexts(current=LOCAL if is_current else contexts.current, saved=saved))
    then = " Commands now use the server of this machine." if is_current else ""
    show_done({"name": name}, f"Removed {name} from {contexts_path()}.{then}", as_json)


def _ask_token(asked: Asked) -> str:
    if asked.token is not None:
        return asked.token.strip()
    if asked.token_file is not None:
        return read_token_file(asked.token_file)
    if sys.stdin.isatty():
        return str(typer.prompt("Token (not shown)", hide_input=True, err=True)).strip()
    return sys.stdin.readline().strip() or fail("There is no token on standard input. Give it with --token-file FILE.")


def _try(context: Context) -> dict[str, Any]:
    """Return the user of a token, or end the command with why it does not work."""
    target = Target(
        url=context.url,
        token=context.token,
        token_from="this command",
        named_by="this command",
        ca=Path(context.ca) if context.ca else None,
    )
    return Server(target).get("me")
