"""Errors of models, and the translation of pydantic-ai's exceptions into them.

`ModelBusy` can be retried; `ModelFailed` is final. The messages contain no keys: the code that raises them hides them.
"""

import ssl
from collections.abc import Iterable
from typing import Any

from pydantic_ai.exceptions import (
    AgentRunError,
    ModelAPIError,
    ModelConnectionError,
    ModelHTTPError,
    ModelQuotaExceededError,
    ModelRequestTimeout,
    UserError,
)

from wakeful.domain.errors import Conflict, Invalid, Unavailable, WakefulError

MAX_QUOTE = 500  # characters of a provider's error text
BUSY_STATUSES = frozenset({408, 409, 425, 429})
KEYLESS_ADVICE = "To try Pydantic AI without an API key"  # about pydantic-ai's test model, which we do not offer
SDKS = frozenset({"anthropic", "google", "httpcore", "httpcore2", "httpx", "httpx2", "openai"})
CONNECTION_ERRORS = frozenset({"APIConnectionError", "APITimeoutError", "TransportError"})


class ModelFailed(Unavailable):
    """The model gave no answer, and a retry would not help."""

    code = "model_failed"

    def __init__(self, model: str, problem: str, *, status: int | None = None) -> None:
        super().__init__(f"The model {model!r} gave no answer: {problem}")
        self.problem = problem
        self.status = status


class ModelCutOff(ModelFailed):
    """The answer was interrupted in the middle."""

    code = "model_cut_off"


class ModelBusy(Unavailable):
    """The model cannot answer now; the same request may work later."""

    code = "model_busy"

    def __init__(
        self, model: str, problem: str, *, retry_after: float | None = None, status: int | None = None
    ) -> None:
        super().__init__(f"The model {model!r} cannot answer now: {problem}")
        self.problem = problem
        self.retry_after = retry_after  # seconds the provider asked for
        self.status = status


class ModelSilent(ModelBusy):
    """The model accepted the request and sent nothing until the time limit."""


class NoSuchModel(Invalid):
    code = "no_such_model"

    def __init__(self, model: str, problem: str) -> None:
        super().__init__(
            f"There is no model {model!r}: {problem} Use 'demo', 'openai-chat:NAME' for any OpenAI-compatible endpoint,"
            " or a provider string such as 'anthropic:NAME'.",
            field="model",
        )


class ModelKeyMissing(Conflict):
    code = "model_key_missing"

    def __init__(self, model: str, remedy: str) -> None:
        super().__init__(f"The model {model!r} cannot be used: its provider is not set up. {remedy}", field="model")


class ProviderMissing(Conflict):
    code = "provider_missing"

    def __init__(self, model: str, remedy: str) -> None:
        super().__init__(f"The model {model!r} cannot be used: a package is missing. {remedy}", field="model")


class UnsupportedContent(Invalid):
    code = "unsupported_content"

    def __init__(self, model: str, what: str) -> None:
        super().__init__(f"The model {model!r} cannot be sent {what}. Send text or images instead.")


def is_busy(status: int) -> bool:
    """Return whether the same request may work later."""
    return status in BUSY_STATUSES or status >= 500


def is_untrusted(error: BaseException | None) -> bool:
    """Return whether a connection failed because of TLS, such as a wrong certificate: a retry does not help."""
    while error is not None:
        if isinstance(error, ssl.SSLError) and not isinstance(error, ssl.SSLEOFError | ssl.SSLZeroReturnError):
            return True
        error = error.__cause__ or error.__context__
    return False


def quote(text: str, *, hide: Iterable[str] = ()) -> str:
    """Return a provider's error text on one line, shortened, without secrets that it may repeat."""
    for secret in hide:
        if secret:
            text = text.replace(secret, "[hidden]")
    text = " ".join(text.split())
    return text if len(text) <= MAX_QUOTE else f"{text[: MAX_QUOTE - 1]}…"


def words_of(body: Any) -> str:
    """Return the text in an error's body: {"error": {"message"}}, {"error"}, {"message"}, {"detail"}, or text."""
    if isinstance(body, dict):
        for key in ("error", "message", "detail"):
            if inner := body.get(key):  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType]  (JSON)
                return words_of(inner)
    return str(body)  # pyright: ignore[reportUnknownArgumentType]  (JSON)


def translate(error: BaseException, model: str, *, hide: Iterable[str] = ()) -> WakefulError | None:
    """Return our error for an exception of pydantic-ai or an SDK, or None if it is not about the model."""
    if isinstance(error, WakefulError):
        return error
    if isinstance(error, ModelAPIError):
        return _translate_api_error(error, model, tuple(hide))
    if isinstance(error, ImportError):
        return ProviderMissing(model, quote(str(error)))
    if isinstance(error, UserError):
        return ModelFailed(model, quote(str(error), hide=hide))
    if isinstance(error, AgentRunError):
        return ModelFailed(model, quote(error.message, hide=hide))
    return _translate_sdk_error(error, model, tuple(hide))


def _translate_api_error(error: ModelAPIError, model: str, hide: tuple[str, ...]) -> WakefulError:
    status = error.status_code if isinstance(error, ModelHTTPError) else None
    words = quote(words_of(error.body) if error.body else error.message, hide=hide)
    problem = words if status is None else f"{words} (HTTP {status})"
    if error.in_stream:
        return ModelCutOff(model, problem, status=status)
    is_passing = isinstance(error, ModelConnectionError | ModelRequestTimeout) or (
        status is not None and is_busy(status)
    )
    if is_passing and not isinstance(error, ModelQuotaExceededError) and not is_untrusted(error):
        return ModelBusy(model, problem, retry_after=error.retry_after, status=status)
    return ModelFailed(model, problem, status=status)


def _translate_sdk_error(error: BaseException, model: str, hide: tuple[str, ...]) -> WakefulError | None:
    """Decide by class name, because an SDK that is not used must not be imported."""
    kinds = type(error).__mro__
    if kinds[0].__module__.partition(".")[0] not in SDKS:
        return None
    problem = quote(str(error) or kinds[0].__name__, hide=hide)
    status = getattr(error, "status_code", None)
    if is_untrusted(error):
        return ModelFailed(model, problem, status=status)
    if any(kind.__name__ in CONNECTION_ERRORS for kind in kinds) or (isinstance(status, int) and is_busy(status)):
        return ModelBusy(model, problem, status=status)
    return ModelFailed(model, problem, status=status)
