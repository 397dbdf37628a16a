"""Models as a provider lists them, and servers of local models that were found on this machine."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from wakeful.domain.errors import Invalid
from wakeful.domain.models.names import nearest

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
