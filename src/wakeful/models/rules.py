"""Rules of models: the fields of one that an owner adds or the settings file has, lists, tests, and calls as text."""

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Literal, cast, get_args

from wakeful.core.errors import Conflict, Invalid, NotFound, Unavailable, WakefulError
from wakeful.core.records import Model, StoredToolCalls, ToolCalls
from wakeful.models.names import DEMO, nearest, provider_of
from wakeful.models.providers import Provider, check_address

MAX_MODELS = 200
MAX_ID = 200  # characters of a model's id at its provider
MAX_KEY = 4_000
MIN_WINDOW, MAX_WINDOW = 1_000, 100_000_000  # tokens
MIN_OUTPUT, MAX_OUTPUT = 16, 10_000_000
MAX_PRICE = 1_000_000  # dollars per million tokens
RESERVED = (DEMO, "default", "discover", "list", "providers", "test")
_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")
_ID = re.compile(r"[!-~]+")


class ModelNotFound(NotFound):
    code = "no_such_model"

    def __init__(self, name: str, known: Collection[str]) -> None:
        near = nearest(name, known)
        hint = f"The nearest is {near!r}." if near else "None was added yet."
        super().__init__(f"There is no model named {name!r}. {hint} `wakeful model ls` and GET /models list them.")


class ModelNameTaken(Conflict):
    code = "model_name_taken"

    def __init__(self, name: str) -> None:
        super().__init__(
            f"There is a model named {name!r} already. Choose another name, or change that one "
            f"(`wakeful model edit {name}`, PATCH /models/{name}).",
            field="name",
        )


class ModelFromSettings(Conflict):
    code = "model_from_settings"

    def __init__(self, name: str) -> None:
        super().__init__(
            f"The model {name!r} comes from the server's settings file ([models.{name}]), so it can only be changed "
            "there. Choose another name for one of your own.",
            field="name",
        )


class DefaultFromSettings(Conflict):
    code = "default_from_settings"

    def __init__(self, model: str) -> None:
        super().__init__(
            f"The default model {model!r} comes from the server's settings (WAKEFUL_MODEL or `model` in the file), "
            "which take precedence. Remove it there and restart, then choose a default here.",
            field="model",
        )


class ModelInUse(Conflict):
    code = "model_in_use"

    def __init__(self, name: str, users: Sequence[str]) -> None:
        shown = ", ".join(users[:10]) + (f" and {len(users) - 10} more" if len(users) > 10 else "")
        super().__init__(
            f"The model {name!r} is used by {shown}. Give them another model first, or remove it anyway "
            f"(`wakeful model rm {name} --force`, `?force=true`): then their runs fail until they have another one.",
        )


class ModelChangedMeanwhile(Conflict):
    code = "model_changed_meanwhile"

    def __init__(self, name: str) -> None:
        super().__init__(f"The model {name!r} was changed or removed at the same time. Look at it, and try again.")


class KeyNeeded(Invalid):
    code = "key_needed"

    def __init__(self, provider: Provider) -> None:
        where = f" {provider.key_page} has it." if provider.key_page else ""
        super().__init__(
            f"{provider.label} needs a key, and a model that is added uses only its own.{where}",
            field="key",
        )


class NoCallsAsText(Invalid):
    code = "no_calls_as_text"

    def __init__(self) -> None:
        super().__init__(
            "`tool_calls` must be 'native' or 'none', got 'text'. Calls that a model writes as text are no longer "
            "made: strangers could have them made by writing them into a page that the model quotes.",
            field="tool_calls",
        )


class TooManyModels(Conflict):
    code = "too_many_models"
    text = f"There are {MAX_MODELS} models, which is the limit. Remove one first."


class ModelKeyUnreadable(Unavailable):
    """The stored key of a model was encrypted with another device key."""

    code = "model_key_unreadable"

    def __init__(self, name: str) -> None:
        super().__init__(
            f"The key of the model {name!r} cannot be decrypted with the device key of this server: it was saved with "
            "another one, perhaps by another node. Give all nodes the same device key (WAKEFUL_DEVICE_KEY), or set "
            f"the key again with `wakeful model edit {name} --key`."
        )


class ModelKeyMissing(Conflict):
    code = "model_key_missing"

    def __init__(self, model: str, remedy: str) -> None:
        super().__init__(f"The model {model!r} cannot be used: its provider is not set up. {remedy}", field="model")


def check_name(name: str) -> str:
    if name in RESERVED or not _NAME.fullmatch(name):
        why = "is reserved" if name in RESERVED else "is not one"
        raise Invalid(
            "The name of a model has 1 to 64 of a-z, 0-9, dot, hyphen and underscore, and begins with a letter or a "
            f"digit; {name[:80]!r} {why}.",
            field="name",
        )
    return name


def refuse_text(tool_calls: object) -> object:
    if tool_calls == "text":
        raise NoCallsAsText
    return tool_calls


def read_tool_calls(stored: StoredToolCalls) -> ToolCalls:
    return "none" if stored == "text" else stored


def suggest_name(model: str, taken: Collection[str]) -> str:
    """Return a free name for a model, made from its id at the provider."""
    plain = re.sub(r"[^a-z0-9._-]+", "-", model.rpartition("/")[2].lower()).strip("._-")[:60] or "model"
    if plain in RESERVED:
        plain = f"{plain}-model"
    numbered = [plain, *(f"{plain}-{number}" for number in range(2, MAX_MODELS + 2))]
    return next(name for name in numbered if name not in taken)


def check(model: Model) -> None:
    """Refuse fields that cannot be right. The address is checked on its own."""
    check_name(model.name)
    provider_of(model.provider)
    if not _ID.fullmatch(model.model) or len(model.model) > MAX_ID:
        raise Invalid(
            f"`model` is the id of the model at its provider: 1 to {MAX_ID} printable characters without blanks, got "
            f"{model.model[:80]!r}.",
            field="model",
        )
    _check_number("context_window", model.context_window, MIN_WINDOW, MAX_WINDOW, "tokens")
    _check_number("output_limit", model.output_limit, MIN_OUTPUT, MAX_OUTPUT, "tokens")
    for name in ("input_price", "output_price"):
        _check_number(name, getattr(model, name), 0, MAX_PRICE, "dollars per million tokens")
    if (model.input_price is None) != (model.output_price is None):
        raise Invalid("`input_price` and `output_price` belong together: give both, or neither.", field="input_price")
    window, output = model.context_window, model.output_limit
    if window is not None and output is not None and output >= window:
        raise Invalid(
            f"`output_limit` must be smaller than `context_window` ({window:,}), got {output:,}.", field="output_limit"
        )


def check_key(key: str) -> str:
    """Return a key without blanks around it. The message of a refusal does not contain it."""
    key = key.strip()
    if not key or len(key) > MAX_KEY or not _ID.fullmatch(key):
        raise Invalid(f"`key` is 1 to {MAX_KEY:,} printable ASCII characters without blanks.", field="key")
    return key


def _check_number(name: str, value: Any, least: int, most: int, unit: str) -> None:
    if value is not None and not least <= value <= most:
        raise Invalid(f"`{name}` must be {least:,} to {most:,} {unit}, got {value:,}.", field=name)


# Models as a provider lists them, and servers of local models that were found on this machine.


MAX_LISTED = 2_000  # models of one provider


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedModel:
    """A model in a provider's list, with the facts that the provider gives; None: it does not say."""

    id: str
    label: str | None = None
    context_window: int | None = None  # tokens
    output_limit: int | None = None
    input_price: float | None = None  # dollars per million tokens
    output_price: float | None = None
    has_tools: bool | None = None
    images: bool | None = None
    thinking: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundServer:
    """A server of local models that answers on this machine. It is only offered: nothing uses it by itself."""

    provider: str
    label: str
    address: str
    models: Sequence[ListedModel]


class ModelNotListed(Invalid):
    code = "model_not_listed"

    def __init__(self, provider: str, model: str, known: Collection[str]) -> None:
        hint = f"The nearest is {nearest(model, known)!r}." if known else "It lists no model at all."
        super().__init__(
            f"{provider} does not list a model {model!r}. {hint} Nothing was saved. To save it without this check, "
            "use `--no-check` (`check: false`).",
            field="model",
        )


def find_listed(provider: str, model: str, listed: Sequence[ListedModel]) -> ListedModel:
    """Return the facts of a model, or refuse an id that its provider does not list."""
    for each in listed:
        if each.id == model or each.id == f"{model}:latest":  # Ollama's name of a model without a tag
            return each
    raise ModelNotListed(provider, model, [each.id for each in listed])


TrialOutcome = Literal["answered", "waiting", "failed", "timed_out"]
Problem = Literal[
    "address", "busy", "key", "model", "name", "not_a_model", "package", "quota", "refused", "timeout", "tls"
]


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelTrial:
    """A model's answer, or the provider's error. `waiting`: no answer yet; ask again for the result of this test."""

    model: str  # as written
    outcome: TrialOutcome
    seconds: float
    said: str | None = None
    reason: str | None = None  # why there is no answer, in words
    problem: Problem | None = None  # the kind of failure
    tool_calls: ToolCalls | None = None  # None: it did not get that far
    tools_note: str | None = None  # how it calls tools, in words
    is_loading: bool = False  # a local model that is still being loaded
    subject: str | None = None  # provider, model and address that were tested
    context_window: int | None = None
    output_limit: int | None = None


# Models in the settings file: the tables [models.NAME].


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


# Recognises a tool call that a model wrote as text, in the forms of the usual models: nobody makes such a call.


MAX_READ = 200_000  # characters; the rest of a text is not searched
# Marks that only a call has, so a text with one has a call even if its tool does not exist.
_MARKED = re.compile(
    r"<tool_calls?>\s{0,20}(?:[\[{<]|[\w.:-]{1,100}\s{0,20}[{<])|<function=\w|<invoke\s+name=|<\|python_tag\|>"
    r"|\[TOOL_CALLS\]\s{0,20}[\[{\w]|<｜tool▁call|<\|tool_call",
    re.IGNORECASE,
)
_JSON = re.compile(
    r'"(?:name|tool|tool_name|function|function_name)"\s*:\s*"([\w.:-]{1,100})"'
    r'\s*(?:,\s*"(?:arguments|parameters|args|input|tool_input)"\s*:|\})'
)
_PYTHON = re.compile(
    r"^[ \t]*(?:<\|\w{1,40}\|>)?\[?(?:print\()?([A-Za-z_][\w.]{0,99})\((?=\s*(?:\)|\w{1,100}\s*=))(.*)", re.MULTILINE
)
_CODE_SPAN = re.compile(r"(?<!`)`[^`\n]+`(?!`)")


def has_text_call(text: str, tools: Collection[str]) -> bool:
    """Return whether a text has a call of one of these tools, or one that is clearly marked as a call."""
    text = _CODE_SPAN.sub(lambda found: "" if found[0] != text.strip() else found[0], text[:MAX_READ])
    return (
        _MARKED.search(text) is not None
        or any(found[1] in tools for found in _JSON.finditer(text))
        # A sentence can begin like a call, and ends in another way.
        or any(found[1] in tools and found[2].rstrip()[-1:] in ")],>{['\"" for found in _PYTHON.finditer(text))
    )
