"""Models in the settings file: the tables [models.NAME]."""

from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any, Literal, cast, get_args

from wakeful.core.errors import WakefulError
from wakeful.core.records import Model, StoredToolCalls, ToolCalls
from wakeful.models.addresses import check_address
from wakeful.models.names import nearest, provider_of
from wakeful.models.rules import check, check_key

SecretOf = Callable[[Literal["file", "env"], str], str]  # raises ValueError with what is wrong
_KEYS = tuple(each.name for each in fields(Model) if each.name not in ("name", "source", "created_at", "updated_at"))
_NUMBERS = ("context_window", "output_limit", "input_price", "output_price")
_FLAGS = ("images", "thinking")


def read_models(tables: object, secret_of: SecretOf) -> tuple[dict[str, Model], list[str]]:
    """Parse the tables; return the models, and a line without values for every problem."""
    if not isinstance(tables, Mapping):
        return {}, ["`models` is not a table. Write one table for each model, such as [models.local]."]
    models: dict[str, Model] = {}
    problems: list[str] = []
    for name, table in cast("Mapping[str, object]", tables).items():
        try:
            models[name] = _read(name, table, secret_of)
        except (ValueError, WakefulError) as error:
            problems.append(f"[models.{name}]: {error}")
    return models, problems


def _read(name: str, table: object, secret_of: SecretOf) -> Model:
    if not isinstance(table, Mapping):
        raise ValueError('it is not a table. Write provider = "ollama" and model = "qwen3:8b" under it.')
    given = dict(cast("Mapping[str, Any]", table))
    for key in given:
        if key not in _KEYS:
            raise ValueError(f"there is no key {key!r}; the nearest is {nearest(key, _KEYS)!r}.")
    for key in ("provider", "model"):
        if not isinstance(given.get(key), str):
            raise ValueError(f"`{key}` is missing, or not a text.")
    _check_types(given)
    provider = provider_of(given["provider"])
    given["address"] = check_address(provider, given.get("address"))
    given["key"] = _read_key(given.get("key"), secret_of)
    model = Model(name=name, source="settings", **given)
    check(model)
    if provider.needs_key and model.key is None:
        raise ValueError(f'{provider.label} needs a key: write key = {{ env = "VARIABLE" }} or {{ file = "path" }}.')
    return model


def _check_types(given: Mapping[str, Any]) -> None:
    for key in _NUMBERS:
        value = given.get(key)
        allowed = (int, float) if key.endswith("_price") else (int,)
        if value is not None and (isinstance(value, bool) or not isinstance(value, allowed)):
            raise ValueError(f"`{key}` is a number.")
    for key in _FLAGS:
        if not isinstance(given.get(key, False), bool):
            raise ValueError(f"`{key}` is true or false.")
    if given.get("tool_calls") not in (None, *get_args(StoredToolCalls)):
        raise ValueError(f"`tool_calls` is one of {', '.join(get_args(ToolCalls))}.")
    if not isinstance(given.get("address", ""), str):
        raise ValueError("`address` is a text.")


def _read_key(value: object, secret_of: SecretOf) -> str | None:
    """Return a key: a text, or the content of a file or environment variable."""
    if value is None:
        return None
    if isinstance(value, str):
        return check_key(value)
    given: Mapping[str, object] = cast("Mapping[str, object]", value) if isinstance(value, Mapping) else {}
    if len(given) == 1:
        [(place, where)] = given.items()
        if place in ("file", "env") and isinstance(where, str):
            try:
                return check_key(secret_of(place, where))
            except ValueError as error:
                raise ValueError(f"`key`: {error}") from None
    raise ValueError('`key` is a text, { file = "path" } or { env = "VARIABLE" }.')
