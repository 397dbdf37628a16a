"""`wakeful model …`: the models of the server. Owners only.

`add` without a name asks at the terminal: a model found on this machine, or one from a provider's list.
"""

import sys
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, NoReturn

import typer

from wakeful.cli.arguments import read_secret
from wakeful.cli.nouns import Commands
from wakeful.cli.output import (
    WRONG,
    AsJson,
    echo,
    fail,
    harmless,
    print_note,
    show_done,
    show_json,
    show_list,
    show_one,
)
from wakeful.cli.server import Server, connect, to_body

app = Commands()

Named = Annotated[str, typer.Argument(metavar="NAME", help="A model's name, as `wakeful model ls` shows it.")]
Address = Annotated[str | None, typer.Option(help="The base URL of its endpoint; without it, the provider's own.")]
AsksKey = Annotated[
    bool,
    typer.Option("--key", help="Give a key: you are asked for it, or it is read from stdin. Never an argument."),
]
Window = Annotated[int | None, typer.Option("--context-window", help="Its context window, in tokens.")]
Output = Annotated[int | None, typer.Option("--output-limit", help="The most tokens of one answer.")]
InputPrice = Annotated[float | None, typer.Option(help="Dollars per million input tokens, if it is not known.")]
OutputPrice = Annotated[float | None, typer.Option(help="Dollars per million output tokens, if it is not known.")]
Calls = Annotated[
    str | None,  # the server says why it refuses `text`
    typer.Option("--tool-calls", metavar="<native|none>", help="How it calls tools; `wakeful model test` finds out."),
]
Images = Annotated[bool | None, typer.Option("--images/--no-images", help="Whether it reads images.")]
Thinking = Annotated[bool | None, typer.Option("--thinking/--no-thinking", help="Whether it thinks first.")]
Check = Annotated[bool, typer.Option("--check/--no-check", help="Ask the endpoint whether it has the model.")]

_OTHERS = ("server", "key", "as_json", "is_default", "check")


@app.command()
def add(
    provider: Annotated[
        str | None, typer.Argument(help="A provider, such as ollama or anthropic. Without it, you can choose.")
    ] = None,
    model: Annotated[str | None, typer.Argument(help="The model's id there, such as qwen3:8b.")] = None,
    name: Annotated[str | None, typer.Option(help="A name for it; without it, one is made from the id.")] = None,
    address: Address = None,
    key: AsksKey = False,
    context_window: Window = None,
    output_limit: Output = None,
    input_price: InputPrice = None,
    output_price: OutputPrice = None,
    tool_calls: Calls = None,
    images: Images = None,
    thinking: Thinking = None,
    is_default: Annotated[
        bool | None,
        typer.Option(
            "--default/--no-default",
            help="Use it for agents without a model of their own. Without this option: if that is the demo model.",
        ),
    ] = None,
    check: Check = True,
    as_json: AsJson = False,
) -> None:
    """Add a model. Without arguments, local models on this machine are offered.

    Its key is stored encrypted and never shown again.
    """
    body = to_body(locals(), {}, without=_OTHERS)
    server = connect()
    secret = read_secret("Key") if key else None
    if provider is None or model is None:
        body |= choose(server, provider, address, secret)
        secret = body.pop("key", secret)
    elif secret is None and sys.stdin.isatty() and _provider(server, provider)["needs_key"]:
        secret = read_secret("Key")
    if secret is not None:
        body["key"] = secret
    if is_default is None:
        is_default = server.get("models")["default"]["source"] == "built_in"
    made = server.post("models", body=body | {"check": check, "make_default": is_default})
    if as_json:
        show_json(made)
        return
    echo(f"Added {made['name']}: {_describe(made)}")
    if made["is_default"]:
        echo("Agents without a model of their own use it now.")
    echo(f"Try it with `wakeful model test {made['name']}`.")


@app.command(name="ls")
def list_models(as_json: AsJson = False) -> None:
    """List the models, and which one is the default."""
    found = connect().get("models")
    rows = [
        {
            **each,
            "name": f"{each['name']} *" if each["is_default"] else each["name"],
            "key": "yes" if each["has_key"] else "no",
            "window": f"{each['abilities']['context_window']:,}" if each["abilities"]["is_window_known"] else None,
            "tool_calls": each["abilities"]["tool_calls"] if each["tested_at"] or each["tool_calls"] else None,
        }
        for each in found["models"]
    ]
    columns = ("name", "provider", "model", "address", "key", "window", "tool_calls", "source")
    empty = "No models were added. `wakeful model add` adds one."
    show_list(found, rows, columns, empty=empty, as_json=as_json)
    if not as_json:
        why = {"settings": "set in the settings", "chosen": "chosen", "built_in": "built in; it is not an LLM"}
        print_note(f"Default model: {found['default']['model']} ({why[found['default']['source']]}).")
        _note_removed(found["default"])


@app.command()
def show(name: Named, as_json: AsJson = False) -> None:
    """Show a model, without its key."""
    found = connect().get("models", name)
    (show_json if as_json else show_one)(found)


@app.command()
def edit(
    name: Named,
    provider: Annotated[str | None, typer.Option(help="Another provider; drops the key.")] = None,
    model: Annotated[str | None, typer.Option(help="Another id at the provider.")] = None,
    address: Annotated[str | None, typer.Option(help="Another base URL; drops the key.")] = None,
    key: AsksKey = False,
    context_window: Window = None,
    output_limit: Output = None,
    input_price: InputPrice = None,
    output_price: OutputPrice = None,
    tool_calls: Calls = None,
    images: Images = None,
    thinking: Thinking = None,
    check: Check = True,
    as_json: AsJson = False,
) -> None:
    """Change a model. Another provider or address drops its key, unless you give one with --key."""
    body = to_body(locals(), {}, without=(*_OTHERS, "name"))
    if not body and not key:
        fail("Nothing to change: give at least one option, such as --address or --key.", WRONG)
    server = connect()
    had_key = server.get("models", name)["has_key"]
    if key:
        body["key"] = read_secret("Key")
    changed = server.patch("models", name, body=body | {"check": check})
    if had_key and not changed["has_key"]:
        print_note(f"The key was dropped, because it was for another address. Set it: wakeful model edit {name} --key")
    (show_json if as_json else show_one)(changed)


@app.command(name="test")
def try_out(
    name: Annotated[
        str | None, typer.Argument(metavar="[NAME]", help="A name, PROVIDER:MODEL, or none for the default model.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Send a test request with one tool; exit 0 only if the model answers. Waits for a model that is loading."""
    server = connect()
    while True:
        trial = server.post("models", "test", body={"model": name})
        if trial["outcome"] != "waiting":
            break
        print_note(trial["reason"])
    if as_json:
        show_json(trial)
    elif trial["outcome"] == "answered":
        echo(f"{trial['model']} answered in {trial['seconds']:.1f} s. {trial['tools_note']}")
        echo(f"Context window: {trial['context_window']:,} tokens.")
    else:
        echo(trial["reason"], err=True)
    if trial["outcome"] != "answered":
        raise typer.Exit(1)


@app.command()
def default(
    name: Annotated[
        str | None, typer.Argument(metavar="[NAME]", help="A name, PROVIDER:MODEL or demo; without it, show it.")
    ] = None,
    unset: Annotated[bool, typer.Option("--unset", help="Remove the choice, so that it is the demo model.")] = False,
    as_json: AsJson = False,
) -> None:
    """Show or choose the model of agents without one of their own. No restart is needed."""
    server = connect()
    if name is None and not unset:
        found = server.get("models")["default"]
        show_done(found, found["model"], as_json)
        _note_removed(found)
        return
    chosen = server.put("models", "default", body={"model": None if unset else name})
    show_done(chosen, f"The default model is {chosen['model']}.", as_json)


@app.command()
def rm(
    name: Named,
    force: Annotated[
        bool, typer.Option("--force", help="Also if agents use it: their runs fail until they have another one.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Remove a model that no agent uses."""
    done = connect().delete("models", name, force=force)
    show_done(done, "Removed.", as_json)


def _describe(model: Mapping[str, Any]) -> str:
    """Return a model in one line: its id, its place and its window."""
    window = model["abilities"]
    size = f", a context window of {window['context_window']:,} tokens" if window["is_window_known"] else ""
    return f"{model['model']} at {model['provider_label']} ({model['address']}){size}."


def _provider(server: Server, wanted: str) -> dict[str, Any]:
    providers: list[dict[str, Any]] = server.get("models", "providers")["providers"]
    # An unknown one is refused by the server, which names the nearest.
    return next((each for each in providers if each["id"] == wanted), {"needs_key": False})


def _note_removed(default: dict[str, Any]) -> None:
    """Say so if the default model does not exist any more, and what to do."""
    if default["is_removed"]:
        print_note(
            f"{default['model']} was removed: runs of agents without a model of their own fail. Choose another one "
            "with `wakeful model default NAME`, or the demo model with `wakeful model default --unset`."
        )


# Asks at the terminal which model to add: one found on this machine, or one from a provider's list.


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
