"""Checks of the model: a test request, by the running server or, without one, with the settings alone."""

import asyncio
import re
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict
from datetime import datetime
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from wakeful.app.building import build
from wakeful.app.checks.check import Check, skipped, warning, wrong
from wakeful.app.checks.machine import read_date
from wakeful.app.data.earlier_data import is_first_start
from wakeful.app.logs.lines import keep_quiet
from wakeful.config import Settings
from wakeful.domain.models.names import NoSuchModel
from wakeful.domain.models.providers import PROVIDERS

DEMO = "demo"
_DATE_SECONDS = 5.0
_ADVICE = {
    "key": "Give the right key in WAKEFUL_MODEL_API_KEY or model_api_key_file (or the variable of its provider), and "
    "restart the server.",
    "address": "See that the model's server runs and can be reached from here, and that WAKEFUL_MODEL_BASE_URL "
    "(model_base_url) is its address.",
    "name": "Correct the name in WAKEFUL_MODEL (model); the provider does not have this one.",
    "model": "Correct the name in WAKEFUL_MODEL (model); the provider does not have this one.",
    "timeout": "Try again: it may have been loading. If it stays so, choose a faster model in WAKEFUL_MODEL (model).",
}
_OTHER = "See WAKEFUL_MODEL (its name), WAKEFUL_MODEL_API_KEY (its key) and WAKEFUL_MODEL_BASE_URL (its address)."

_CHOSEN = (
    "Correct its key, address or name with `wakeful model edit {}` or on the page under Models, or choose another one "
    "with `wakeful model default`."
)


def check_model_alone(settings: Settings) -> Check:
    """Test the model of the settings without a running server."""
    if "model" not in settings.model_fields_set and not is_first_start(settings):
        return skipped("model", "none in the settings; one that was chosen on the page is tested while the server runs")
    if settings.model == DEMO:
        return judge({"model": DEMO, "outcome": "answered"})
    return judge(asyncio.run(_try(settings)))


def name_calls_as_text(models: Iterable[str]) -> Iterator[Check]:
    """Name each model that is marked as writing its tool calls as text."""
    for name in models:
        yield warning(
            f"model {name}",
            "`tool_calls = text` counts as `none`: calls that a model writes as text are no longer made",
            f"Test it again (`wakeful model test {name}`). If it was set by hand, change it with `wakeful model edit "
            f"{name} --tool-calls none`, or in wakeful.toml.",
        )


def judge(trial: Mapping[str, Any], *, is_chosen: bool = False) -> Check:
    """Return the check for the result of a test request; `is_chosen` if the model is not from the settings."""
    model = trial["model"]
    if model == DEMO:
        return Check(
            name="model", found="the built-in demo, which is not an LLM; `wakeful model add` connects a real one"
        )
    if trial["outcome"] != "answered":
        found, _, advice = str(trial.get("reason")).partition(" was removed. ")
        if advice:  # the default model
            return wrong("model", f"{found} was removed", advice)
        kind = trial.get("problem") or _kind_of(str(trial.get("reason")), str(trial["outcome"]))
        return wrong(
            "model", str(trial.get("reason")), _CHOSEN.format(model) if is_chosen else _ADVICE.get(kind, _OTHER)
        )
    if trial.get("tool_calls") == "none":
        return warning(
            "model",
            f"{model} answers, but calls no tools",
            f"Choose one that can call tools {'with `wakeful model default`' if is_chosen else 'in WAKEFUL_MODEL'}.",
        )
    calls = " and calls tools" if trial.get("tool_calls") else ""
    return Check(name="model", found=f"{model} answers{calls}, after {trial['seconds']:.1f} s")


def _kind_of(reason: str, outcome: str) -> str:
    status = re.search(r"\(HTTP (\d+)\)", reason)
    if status is not None:
        return {"401": "key", "403": "key", "404": "name"}.get(status[1], "")
    return "timeout" if outcome == "timed_out" else "key" if "not set up" in reason else "address"


async def _try(settings: Settings) -> dict[str, Any]:
    """Test the model with a node of its own in an empty directory, so that nothing here is opened or created."""
    keep_quiet()
    with tempfile.TemporaryDirectory(prefix="wakeful-doctor-") as folder:
        places = {"data_dir": Path(folder) / "data", "config_dir": Path(folder) / "config"}
        node = build(settings.model_copy(update=places | {"database_url": None, "device_key": None, "mcp": {}}))
        try:
            async with node.opened():
                while (trial := await node.services.models.test_of_agent(None)).outcome == "waiting":
                    pass  # each request waits; a local model may have to be loaded
                return asdict(trial)
        except NoSuchModel as error:  # such as one that was added, which only the running server knows
            return {"model": settings.model, "outcome": "failed", "reason": error.message, "problem": "name"}


def ask_date(settings: Settings) -> tuple[str, datetime | None] | None:
    """Return the host of the model's provider and the time there, from a request without any key."""
    provider = PROVIDERS.get(settings.model.partition(":")[0])
    url = urlsplit(settings.model_base_url or (provider.address if provider else None) or "")
    if settings.model == DEMO or not url.hostname:
        return None
    kind = HTTPSConnection if url.scheme == "https" else HTTPConnection
    connection = kind(url.hostname, url.port, timeout=_DATE_SECONDS)
    try:
        connection.request("HEAD", "/")
        return url.hostname, read_date(connection.getresponse().headers.get("Date"))
    except (OSError, HTTPException):
        return url.hostname, None
    finally:
        connection.close()
