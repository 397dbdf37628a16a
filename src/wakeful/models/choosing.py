"""Asks at the terminal which model to add: one found on this machine, or one from a provider's list."""

import sys
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

import typer

from wakeful.cli.output import WRONG, echo, fail, harmless
from wakeful.cli.server import Server

_MAX_SHOWN = 40  # models of a list; the others are typed in


def choose(server: Server, provider: str | None, address: str | None, key: str | None) -> dict[str, Any]:
    """Ask which model to add, and return its provider, address, key and id."""
    if provider is None:
        found: list[dict[str, Any]] = server.post("models", "discover")["servers"]
        offers = [(each, str(model["id"])) for each in found for model in each["models"]]
        if not sys.stdin.isatty():
            _refuse(offers)
        chosen = _choose_found(offers)
        if chosen is not None:
            return chosen
    providers = {each["id"]: each for each in server.get("models", "providers")["providers"]}
    asked = providers.get(provider) if provider is not None else _choose_provider(list(providers.values()))
    if asked is None:
        server.post("models", "list", body={"provider": provider})  # is refused, with the nearest name
        fail(f"There is no provider {provider!r}. `wakeful model add` lists them.", WRONG)
    if not sys.stdin.isatty():
        _refuse_without_model(server, asked, address, key)
    return _complete(server, asked, address, key)


def _complete(server: Server, provider: Mapping[str, Any], address: str | None, key: str | None) -> dict[str, Any]:
    """Ask for what is missing: address, key and model."""
    body: dict[str, Any] = {"provider": provider["id"]}
    if address is None and provider["address"] is None:
        address = typer.prompt(harmless(f"Address, such as {provider.get('address_example')}"), err=True)
    if address is not None:
        body["address"] = address
    if key is None and provider["needs_key"]:
        where = f" ({provider['key_page']})" if provider.get("key_page") else ""
        key = typer.prompt(harmless(f"Key of {provider['label']}{where}"), hide_input=True, err=True)
    if key is not None:
        body["key"] = key
    listed: list[dict[str, Any]] = []
    if provider["lists_models"]:
        listed = server.post("models", "list", body=body)["models"]
    return body | {"model": _choose_model([each["id"] for each in listed], provider)}


def _choose_found(offers: Sequence[tuple[Mapping[str, Any], str]]) -> dict[str, Any] | None:
    """Offer the models that were found on this machine; None: another one."""
    if not offers:
        echo("No local models answer on this machine (Ollama, LM Studio, vLLM, llama.cpp).", err=True)
        return None
    echo("Found on this machine:", err=True)
    for number, (server, model) in enumerate(offers, start=1):
        echo(f"{number:>3}  {model}  ({server['label']}, {server['address']})", err=True)
    echo("  0  another provider", err=True)
    number: int = typer.prompt("Add which one", type=int, default=1, err=True)
    if not 1 <= number <= len(offers):
        return None
    server, model = offers[int(number) - 1]
    return {"provider": server["provider"], "address": server["address"], "model": model}


def _choose_provider(providers: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    for number, provider in enumerate(providers, start=1):
        needs = "needs a key" if provider["needs_key"] else provider["address"] or "needs an address"
        echo(f"{number:>3}  {provider['label']}  ({needs})", err=True)
    while True:
        answer = str(typer.prompt("Which provider", err=True)).strip().lower()
        if answer.isdecimal() and 1 <= int(answer) <= len(providers):
            return providers[int(answer) - 1]
        for provider in providers:
            if answer in (provider["id"], provider["label"].lower()):
                return provider


def _choose_model(ids: Sequence[str], provider: Mapping[str, Any]) -> str:
    for number, model in enumerate(ids[:_MAX_SHOWN], start=1):
        echo(f"{number:>3}  {model}", err=True)
    if len(ids) > _MAX_SHOWN:
        echo(f"     … and {len(ids) - _MAX_SHOWN} more", err=True)
    asked = "Model (a number or an id)" if ids else f"Model, such as {provider.get('example')}"
    answer = str(typer.prompt(harmless(asked), err=True)).strip()
    is_number = answer.isdecimal() and 1 <= int(answer) <= min(len(ids), _MAX_SHOWN)
    return ids[int(answer) - 1] if is_number else answer


def _refuse(offers: Sequence[tuple[Mapping[str, Any], str]]) -> None:
    found = "\n".join(
        f"  wakeful model add {server['provider']} {model} --address {server['address']}" for server, model in offers
    )
    listed = f" Found on this machine:\n{found}" if found else ""
    fail(f"Which model? Write: wakeful model add PROVIDER MODEL.{listed}", WRONG)


def _refuse_without_model(
    server: Server, provider: Mapping[str, Any], address: str | None, key: str | None
) -> NoReturn:
    """Say which models there are, if that can be asked without a key or an address that is missing."""
    ids: list[str] = []
    is_complete = (address or provider["address"]) and (key or not provider["needs_key"])
    if provider["lists_models"] and is_complete:
        body = {"provider": provider["id"], "address": address, "key": key}
        listed = server.post("models", "list", body={name: value for name, value in body.items() if value})
        ids = [each["id"] for each in listed["models"]]
    more = f" and {len(ids) - _MAX_SHOWN} more" if len(ids) > _MAX_SHOWN else ""
    there = f" {provider['label']} has: {', '.join(ids[:_MAX_SHOWN])}{more}." if ids else ""
    fail(f"Which model? Write it after the provider: wakeful model add {provider['id']} MODEL.{there}", WRONG)
