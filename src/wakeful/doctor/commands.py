"""`wakeful doctor`: checks everything that a server needs, and says what to do about the rest."""

import os
import sys
from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from wakeful.cli.output import AsJson, echo, harmless, show_json
from wakeful.cli.server import NotReached, ask
from wakeful.cli.target import Target, find_target, is_remote_chosen, target_of
from wakeful.core.sources import FILE_NAME, find_config_dir

if TYPE_CHECKING:
    from wakeful.config.settings import Settings
    from wakeful.core.files import Running
    from wakeful.doctor.checks import Check


_MODEL_SECONDS = 90.0  # a test request to a slow model
_SIGNS = {
    "ok": ("ok", "green"),
    "warning": ("note", "yellow"),
    "wrong": ("WRONG", "red"),
    "skipped": ("-", "bright_black"),
}


def doctor(
    quick: Annotated[
        bool, typer.Option("--quick", help="Send nothing to the model, and start no MCP server; takes a second.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Check settings, keys, disk, clock, database, model, MCP servers, port and versions; say what to do.

    Exit 0 if nothing is wrong, else 1. It works with the server running and without, and changes nothing. With --url or
    a context, it checks what the server there tells.
    """
    found: list[Check] = []
    for check in _check_remote(find_target(), quick) if is_remote_chosen() else _check_here(quick):
        found.append(check)
        if not as_json:
            _show(check)
    wrong = [check for check in found if check.status == "wrong"]
    if as_json:
        show_json({"ok": not wrong, "checks": [asdict(check) for check in found]})
    else:
        echo(_sum_up(len(wrong)))
    if wrong:
        raise typer.Exit(1)


def _sum_up(count: int) -> str:
    return "Nothing is wrong." if count == 0 else f"{count} {'thing is' if count == 1 else 'things are'} wrong."


def _show(check: "Check") -> None:
    sign, colour = _SIGNS[check.status]
    painted = (
        f"{sign:<6}" if "NO_COLOR" in os.environ or not sys.stdout.isatty() else typer.style(f"{sign:<6}", fg=colour)
    )
    typer.echo(painted + harmless(f"{check.name}: {check.found}"))  # noqa: TID251  (it is harmless)
    if check.advice is not None:
        echo(f"      → {harmless(check.advice)}")


def _check_here(quick: bool) -> Iterator["Check"]:
    from wakeful.config.settings import ConfigError, load_settings
    from wakeful.core.files import find_running
    from wakeful.doctor import checks as database
    from wakeful.doctor import checks as keys
    from wakeful.doctor import checks as machine
    from wakeful.doctor import checks as model
    from wakeful.doctor import checks as traces
    from wakeful.doctor.checks import Check, skipped, wrong

    path = find_config_dir(os.environ) / FILE_NAME
    try:
        settings = load_settings()
    except ConfigError as error:
        for problem in error.problems:
            yield wrong(
                "settings", problem, f"Correct it in {path} or the environment; `wakeful config check` checks it."
            )
        yield skipped("everything else", "is checked when the settings are right")
        return
    running = find_running(settings.data_dir)
    yield Check(name="settings", found=str(path) if path.exists() else f"no {path}, so defaults and the environment")
    yield machine.check_versions(running)
    yield from machine.check_disk(settings)
    yield from machine.check_proxy(settings)
    yield from keys.check_keys(settings)
    yield database.check_database(settings, is_running=running is not None, is_quick=quick)
    asked = [database.ask_time(settings), None if quick else model.ask_date(settings)]
    yield machine.check_clock(settings, dict(filter(None, asked)))
    yield machine.check_port(settings, running)
    yield from traces.check_traces(settings, is_quick=quick)
    yield from _check_running(settings, running, quick)


def _check_running(settings: "Settings", running: "Running | None", quick: bool) -> Iterator["Check"]:
    """Check the server if it runs, then the model and the MCP servers with it or without it."""
    from wakeful.doctor import checks as mcp
    from wakeful.doctor import checks as model
    from wakeful.doctor.checks import skipped

    reached: Target | None = None
    if running is None:
        yield skipped("server", "does not run; start it with `wakeful serve`")
    else:
        target = target_of(running)
        if target is None:
            yield skipped("server", f"runs at {running.address} with a token that is not known here (WAKEFUL_TOKEN)")
        else:
            [check] = _check_server(target)
            yield check
            reached = target if check.status == "ok" else None
    states = None if reached is None else _read_states(reached)
    if quick:
        yield skipped("model", f"{_name_model(reached, settings)}, not asked (--quick)")
    elif reached is not None:
        yield _check_model(reached)
    else:
        yield model.check_model_alone(settings)
    if reached is not None and not quick:
        yield from _name_calls_as_text(reached)
    else:
        named = [name for name, each in settings.models.items() if each.tool_calls == "text"]
        yield from model.name_calls_as_text(named)
    yield from mcp.check_mcp_servers(settings, states, is_quick=quick)


def _check_remote(target: Target, quick: bool) -> Iterator["Check"]:
    from wakeful.doctor.checks import skipped

    is_reached = False
    for check in _check_server(target, is_remote=True):
        yield check
        is_reached = is_reached or (check.name == "server" and check.status == "ok")
    if not is_reached:
        return
    if quick:
        yield skipped("model", "not asked (--quick)")
    else:
        yield _check_model(target)
        yield from _name_calls_as_text(target)
    for name, state in (_read_states(target) or {}).items():
        yield _judge_state(name, state)
    yield skipped("settings, keys and port", "run `wakeful doctor` on that machine to check them")


def _check_server(target: Target, *, is_remote: bool = False) -> Iterator["Check"]:
    """Check that a server answers, takes the token and is ready."""
    from wakeful.doctor.checks import Check, compare_clock, read_date, wrong

    try:
        about, ready = ask(target, "GET", "/about"), ask(target, "GET", "/readyz")
    except NotReached as error:
        found, _, advice = str(error).partition(": ")
        yield wrong("server", found, f"{advice[:1].upper()}{advice[1:]}")
        return
    if not about.is_ok:
        yield wrong(
            "server", f"{target.url}: {about.message}", f"The token is from {target.token_from}. Give the right one."
        )
        return
    if ready.status != 200:
        problems = "; ".join(ready.fields.get("problems", [])) or f"it answered {ready.status}"
        yield wrong("server", f"{target.url} is not ready: {problems}", "`wakeful logs --level warning` shows more.")
        return
    yield Check(name="server", found=f"{target.url}, Wakeful {about.body['version']}, ready")
    if is_remote:
        yield compare_clock(target.url, read_date(ready.date)) or Check(name="clock", found=f"as here: {ready.date}")
        storage = ask(target, "GET", "/storage")
        if storage.is_ok:
            yield _judge_disk(storage.body["free_bytes"])


def _judge_disk(free: int) -> "Check":
    from wakeful.core.resources import MIN_FREE
    from wakeful.doctor.checks import Check, wrong

    if free < MIN_FREE:
        return wrong(
            "disk", f"only {free / 10**6:.1f} MB free on the server", "Free space on the disk of its data directory."
        )
    return Check(name="disk", found=f"{free / 10**9:.1f} GB free on the server")


def _check_model(target: Target) -> "Check":
    """Let the server test its own model: its keys and its network are not this command's."""
    from wakeful.doctor.checks import DEMO, judge, skipped, wrong

    about = ask(target, "GET", "/about")
    if about.is_ok and about.body["is_demo"]:
        return judge({"model": DEMO, "outcome": "answered"})
    agents = ask(target, "GET", "/agents")
    plain = [each["id"] for each in agents.fields.get("agents", []) if each["model"] is None]
    if not plain:
        return skipped("model", "no agent uses the server's own model")
    answer = ask(target, "POST", f"/agents/{plain[0]}/test-model", timeout=_MODEL_SECONDS)
    if not answer.is_ok:
        return wrong(
            "model", answer.message, "Use a token with the scope admin, or run `wakeful doctor` on the server."
        )
    models = ask(target, "GET", "/models")
    return judge(answer.body, is_chosen=models.is_ok and models.body["default"]["source"] == "chosen")


def _name_model(reached: Target | None, settings: "Settings") -> str:
    """Name the default model; it may have been chosen on the page, which only the running server knows."""
    about = None if reached is None else ask(reached, "GET", "/about")
    if about is not None and about.is_ok:
        return str(about.body["model"])
    if "model" not in settings.model_fields_set:
        return "none in the settings; one that was chosen on the page is named while the server runs"
    return f"{settings.model} in the settings"


def _name_calls_as_text(target: Target) -> Iterator["Check"]:
    """Name the models that the server counts as such; its list asks local models for their window."""
    from wakeful.doctor.checks import name_calls_as_text

    return name_calls_as_text(ask(target, "GET", "/models").fields.get("calls_as_text", ()))


def _read_states(target: Target) -> dict[str, Any] | None:
    answer = ask(target, "GET", "/mcp-servers")
    return {each["name"]: each for each in answer.body["mcp_servers"]} if answer.is_ok else None


def _judge_state(name: str, state: dict[str, Any]) -> "Check":
    from wakeful.doctor.checks import Check, wrong

    if state["state"] == "failed":
        advice = (
            f"Run `wakeful mcp test {name}` on the server's machine, and correct [mcp.{name}] in its settings file."
        )
        return wrong(f"MCP {name}", str(state["last_error"]), advice)
    return Check(name=f"MCP {name}", found=f"{state['state']}, {state['tools']} tools")
