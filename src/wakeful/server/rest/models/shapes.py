"""Bodies of the routes for models. A key is accepted and never returned."""

from typing import Annotated, Literal

from pydantic import AwareDatetime, BeforeValidator, Field

from wakeful.domain.models.models import (
    MAX_ID,
    MAX_OUTPUT,
    MAX_PRICE,
    MAX_WINDOW,
    MIN_OUTPUT,
    MIN_WINDOW,
    ToolCalls,
    refuse_text,
)
from wakeful.domain.models.trials import Problem, TrialOutcome
from wakeful.server.rest.shapes import RequestBody, Shape, Sparse

Name = Annotated[str, Field(max_length=64, description="A name of your own: a-z, 0-9, dot, hyphen, underscore.")]
ProviderId = Annotated[
    str, Field(max_length=64, description="The id of a provider, as `GET /models/providers` has it.")
]
ModelId = Annotated[str, Field(max_length=MAX_ID, description="The id of the model at its provider.")]
# Not validated here: a validation error would show the value, which is a secret.
Key = Annotated[str, Field(description="The key for this address. It is stored encrypted and never shown again.")]
AddressField = Annotated[str, Field(max_length=500, description="Base URL. Without it, the provider's own.")]
Window = Annotated[int, Field(ge=MIN_WINDOW, le=MAX_WINDOW, description="Tokens. Without it, as the provider states.")]
Output = Annotated[int, Field(ge=MIN_OUTPUT, le=MAX_OUTPUT, description="Tokens of one answer.")]
Price = Annotated[float, Field(ge=0, le=MAX_PRICE, description="Dollars per million tokens, if it is not known.")]
Written = Annotated[str, Field(min_length=1, max_length=300, description="A name, PROVIDER:MODEL, or `demo`.")]


class ProviderShape(Shape):
    """A provider, and what a model from it needs."""

    id: str
    label: str
    is_local: bool = Field(description="Usually runs on the owner's own machine.")
    needs_key: bool
    address: str | None = Field(description="Its own address. Null: an address must be given.")
    address_example: str | None
    key_page: str | None = Field(description="The web page where a person gets a key.")
    lists_models: bool = Field(description="`POST /models/list` returns its models.")
    example: str = Field(description="An example of a model's id.")
    note: str | None
    extra: str | None = Field(description="The extra of our package that it needs.")
    is_available: bool = Field(description="Whether what it needs is installed.")


class Providers(Shape):
    providers: list[ProviderShape]


class AbilitiesShape(Shape):
    """Limits and abilities that runs with a model use."""

    context_window: int
    is_window_known: bool = Field(description="False: the window is the server's default for unknown models.")
    output_limit: int | None = Field(description="Null: the provider's own limit.")
    tool_calls: ToolCalls
    images: bool | None
    thinking: bool | None


class ModelShape(Shape):
    """A model. Null fields were not given, and are asked of the provider or have defaults: see `abilities`."""

    name: str
    provider: str
    provider_label: str
    model: str
    address: str
    has_key: bool
    source: Literal["settings", "added"] = Field(description="Those of the settings file cannot be changed here.")
    is_default: bool
    used_by: list[str] = Field(
        description="Agents that name it, or allow it to their schedules, with their users: `Wakeful (Owner)`."
    )
    context_window: int | None
    output_limit: int | None
    input_price: float | None
    output_price: float | None
    tool_calls: ToolCalls | None
    images: bool | None
    thinking: bool | None
    abilities: AbilitiesShape
    tested_at: AwareDatetime | None = Field(description="When its way of calling tools was last tested.")
    created_at: AwareDatetime | None
    updated_at: AwareDatetime | None


class DefaultShape(Shape):
    """The model of agents without one of their own."""

    model: str
    source: Literal["settings", "chosen", "built_in"] = Field(
        description="`settings`: it is named in the settings and cannot be changed here. `built_in`: the demo model."
    )
    is_removed: bool = Field(
        description="It was chosen and then removed: runs of agents without a model of their own fail until another "
        "one is chosen."
    )


class ModelList(Shape):
    models: list[ModelShape]
    default: DefaultShape
    calls_as_text: list[str] = Field(
        description="Models that are marked `text`, as in 0.2, by their owner, the settings file or their last test, "
        "which counts as `none`."
    )


class ModelFields(RequestBody):
    """Fields that are left out stay unchanged, or are asked of the provider."""

    address: AddressField | None = None
    key: Key | None = None
    context_window: Window | None = None
    output_limit: Output | None = None
    input_price: Price | None = None
    output_price: Price | None = None
    tool_calls: Annotated[ToolCalls, BeforeValidator(refuse_text)] | None = None
    images: bool | None = None
    thinking: bool | None = None
    check: bool = Field(True, description="Ask the endpoint whether it has the model, and for its limits.")


class NewModel(ModelFields):
    provider: ProviderId
    model: ModelId
    name: Name | None = Field(None, description="Without it, one is made from the model's id.")
    make_default: bool = Field(False, description="Use it for agents without a model of their own.")


class ModelChange(ModelFields):
    """Another provider or address drops the key, unless a new one is given. Null removes a limit, price or ability."""

    provider: ProviderId | None = None
    model: ModelId | None = None


class ListRequest(RequestBody):
    """An endpoint: that of an added model (`name`), or one that is about to be added."""

    name: Name | None = None
    provider: ProviderId | None = None
    address: AddressField | None = None
    key: Key | None = None


class ListedShape(Sparse):
    """A model in a provider's list, with the facts that the provider states."""

    id: str
    label: str | None = None
    context_window: int | None = None
    output_limit: int | None = None
    input_price: float | None = None
    output_price: float | None = None
    has_tools: bool | None = None
    images: bool | None = None
    thinking: bool | None = None


class Listed(Shape):
    models: list[ListedShape]


class FoundShape(Shape):
    """A server of local models that answers on this machine."""

    provider: str
    label: str
    address: str
    models: list[ListedShape]


class Found(Shape):
    servers: list[FoundShape]


class TestRequest(RequestBody):
    model: Written | None = Field(None, description="A name, PROVIDER:MODEL, or `demo`. Null: the default model.")


class DefaultRequest(RequestBody):
    model: Written | None = Field(description="A name, PROVIDER:MODEL, or `demo`. Null: no choice.")


class ModelTrialShape(Sparse):
    """The result of a test request, which offers the model one tool."""

    model: str
    outcome: TrialOutcome = Field(description="`waiting`: no answer yet; ask again for the result of the same test.")
    seconds: float
    said: str | None = None
    reason: str | None = Field(None, description="Why there is no answer, in words.")
    problem: Problem | None = Field(None, description="The kind of failure.")
    tool_calls: ToolCalls | None = Field(None, description="How it called the tool.")
    tools_note: str | None = Field(None, description="The same in words.")
    is_loading: bool = Field(False, description="A local model that may still be loading.")
    context_window: int | None = None
    output_limit: int | None = None
