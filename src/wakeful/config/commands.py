"""`wakeful config …`: the settings of this machine's server, and where each comes from."""

import os
from typing import Any

import typer

from wakeful.cli.nouns import Commands
from wakeful.cli.output import AsJson, echo, fail, print_note, show_done, show_json, show_table
from wakeful.cli.target import find_running_server, read_settings, refuse_remote
from wakeful.core.sources import FILE_NAME, find_config_dir

app = Commands()


@app.callback()
def _stay_here() -> None:
    refuse_remote("`wakeful config` is about the settings of")


@app.command()
def show(as_json: AsJson = False) -> None:
    """Show every setting, its value and where it comes from. Secrets are hidden."""
    settings = read_settings()
    from wakeful.config.settings import trace_settings

    found = trace_settings(settings, os.environ)
    rows: list[dict[str, Any]] = [{"setting": each.name, "value": each.value, "from": each.source} for each in found]
    if as_json:
        show_json({"settings": rows})
        return
    shown = [{**row, "value": _spell(row["value"])} for row in rows]
    show_table(shown, ("setting", "value", "from"), empty="")
    if (running := find_running_server()) is not None:
        print_note(
            f"The running server (pid {running.pid}) has the settings of its own start; its environment may differ."
        )


@app.command()
def path(as_json: AsJson = False) -> None:
    """Print the path of the settings file, whether or not it exists yet."""
    file = find_config_dir(os.environ) / FILE_NAME
    show_done({"path": str(file), "exists": file.exists()}, str(file), as_json)


@app.command()
def check(as_json: AsJson = False) -> None:
    """Check the settings; exit 0 only if a server would start with them."""
    from wakeful.config.settings import ConfigError, load_settings

    problems: tuple[str, ...] = ()
    try:
        load_settings()
    except ConfigError as error:
        problems = error.problems
    if as_json:
        show_json({"ok": not problems, "problems": problems})
    elif problems:
        fail("\n".join(problems))
    else:
        file = find_config_dir(os.environ) / FILE_NAME
        where = str(file) if file.exists() else f"the environment and defaults; there is no {file}"
        echo(f"The settings are fine ({where}).")
    if problems:
        raise typer.Exit(1)


def _spell(value: Any) -> Any:
    if value is None or value == []:
        return None
    return str(value).lower() if isinstance(value, bool) else value
