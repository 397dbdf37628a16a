"""Names of models as agents and settings write them: `demo`, the name of an added model, or PROVIDER:MODEL."""

from collections.abc import Collection
from difflib import get_close_matches

from wakeful.core.errors import Invalid
from wakeful.models.providers import GATEWAY, LIBRARY_PROVIDERS, PROVIDERS, Provider

DEMO = "demo"
_ALIASES = {  # names that people also use
    "azure-openai": "azure",
    "chatgpt": "openai",
    "claude": "anthropic",
    "gemini": "google",
    "google-gla": "google",
    "grok": "xai",
    "llama-cpp": "llamacpp",
    "llama-server": "llamacpp",
    "llama.cpp": "llamacpp",
    "lm-studio": "lmstudio",
    "x-ai": "xai",
}


class NoSuchModel(Invalid):
    code = "no_such_model"

    def __init__(self, model: str, problem: str, field: str = "model") -> None:
        super().__init__(
            f"There is no model {model!r}: {problem} Use the name of a model that was added (`wakeful model ls`), "
            "PROVIDER:MODEL such as 'anthropic:NAME', or 'demo'.",
            field=field,
        )


class DefaultModelRemoved(NoSuchModel):
    def __init__(self, model: str) -> None:
        super(NoSuchModel, self).__init__(
            f"The default model {model!r} was removed. An owner of the server chooses another one under Settings, "
            "Models, or with `wakeful model default NAME`; or give the agent a model of its own.",
            field="model",
        )


class NoSuchProvider(Invalid):
    code = "no_such_provider"

    def __init__(self, provider: str) -> None:
        super().__init__(
            f"There is no provider {provider!r}; the nearest is {nearest_provider(provider)!r}. There are: "
            f"{', '.join(PROVIDERS)}.",
            field="provider",
        )


def check_written(written: str, names: Collection[str], field: str = "model") -> None:
    """Refuse what cannot be a model; `names` are those of the models that were added."""
    provider, colon, model = written.partition(":")
    if written == DEMO or (not colon and written in names):
        return
    if not colon:
        raise NoSuchModel(written, _suggest_name(written, names), field)
    if not is_provider(provider):
        raise NoSuchModel(written, f"no provider is called {provider!r}; {_did_you_mean(provider, model)}", field)
    if not model:
        raise NoSuchModel(written, f"the name of the model is missing after {provider!r}.", field)


def is_provider(provider: str) -> bool:
    """Return whether PROVIDER:MODEL can begin with this."""
    upstream = provider.removeprefix(GATEWAY)
    return upstream in PROVIDERS or upstream in LIBRARY_PROVIDERS or (provider.startswith(GATEWAY) and bool(upstream))


def nearest_provider(provider: str) -> str:
    known = _ALIASES.get(provider.lower())
    return known or get_close_matches(provider.lower(), (*PROVIDERS, *sorted(LIBRARY_PROVIDERS)), n=1, cutoff=0)[0]


def nearest(name: str, known: Collection[str]) -> str | None:
    """Return the most similar name, however different it is."""
    found = get_close_matches(name, known, n=1, cutoff=0)
    return found[0] if found else None


def _did_you_mean(provider: str, model: str) -> str:
    return f"did you mean '{nearest_provider(provider)}:{model or 'NAME'}'?"


def _suggest_name(written: str, names: Collection[str]) -> str:
    lowered = _ALIASES.get(written.lower(), written.lower())
    if lowered in PROVIDERS:
        return f"{written!r} is a provider; did you mean '{lowered}:{PROVIDERS[lowered].example}'?"
    return f"did you mean {nearest(written, (*names, DEMO))!r}?"


def provider_of(provider: str) -> Provider:
    """Return a provider of our table, or refuse its name with the nearest one."""
    found = PROVIDERS.get(provider)
    if found is None:
        raise NoSuchProvider(provider)
    return found
