"""Errors of models, and the translation of pydantic-ai's exceptions into them.

`ModelBusy` can be retried; `ModelFailed` is final. The messages contain no keys: the code that raises them hides them.
"""

import re
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

from wakeful.core.errors import Conflict, Invalid, Unavailable, WakefulError
from wakeful.core.texts import to_title
from wakeful.models.rules import Problem

MAX_QUOTE = 300  # characters of a provider's own words
BUSY_STATUSES = frozenset({408, 409, 425, 429})
_LIBRARY = re.compile(r"pydantic|`?\b\w*(?:Provider|Model|Agent)\(", re.IGNORECASE)  # advice for its programmers
_VARIABLE = re.compile(r"\b[A-Z][A-Z0-9]*_[A-Z0-9_]+\b")
_SENTENCE = re.compile(r"(?<=[.!?])\s+")
SDKS = frozenset({"anthropic", "google", "httpcore", "httpcore2", "httpx", "httpx2", "openai"})
CONNECTION_ERRORS = frozenset({"APIConnectionError", "APITimeoutError", "TransportError"})


class ModelFailed(Unavailable):
    """The model gave no answer, and a retry would not help."""

    code = "model_failed"

    def __init__(self, model: str, problem: str, *, status: int | None = None, kind: Problem = "refused") -> None:
        super().__init__(f"The model {model!r} gave no answer: {problem}")
        self.problem = problem
        self.status = status
        self.kind: Problem = kind


class ModelBusy(Unavailable):
    """The model cannot answer now; the same request may work later."""

    code = "model_busy"
    _what = "cannot answer now"

    def __init__(
        self,
        model: str,
        problem: str,
        *,
        retry_after: float | None = None,
        status: int | None = None,
        kind: Problem = "busy",
    ) -> None:
        super().__init__(f"The model {model!r} {self._what}: {problem}")
        self.problem = problem
        self.retry_after = retry_after  # seconds the provider asked for
        self.status = status
        self.kind: Problem = kind


class ModelSilent(ModelBusy):
    """The model accepted the request and sent nothing until the time limit."""


class ModelCutOff(ModelBusy):
    """The answer was interrupted in the middle."""

    code = "model_cut_off"
    _what = "gave no answer"


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
    return to_title(text, MAX_QUOTE)


def words_of(body: Any) -> str:
    """Return the text in an error's body: {"error": {"message"}}, {"error"}, {"message"}, {"detail"}, or text."""
    if isinstance(body, dict):
        for key in ("error", "message", "detail"):
            if inner := body.get(key):  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType]  (JSON)
                return words_of(inner)
    return str(body)  # pyright: ignore[reportUnknownArgumentType]  (JSON)


def translate(error: BaseException, model: str, *, hide: Iterable[str] = ()) -> WakefulError | None:
    """Return our error for an exception of pydantic-ai or an SDK, or None if it is not about the model."""
    own = _own_error(error)
    if own is not None:
        return own
    if isinstance(error, ModelAPIError):
        return _translate_api_error(error, model, tuple(hide))
    if isinstance(error, ImportError):
        return missing_package(model, error)
    if isinstance(error, UserError):
        return ModelFailed(model, quote(without_advice(str(error)), hide=hide))
    if isinstance(error, AgentRunError):
        return ModelFailed(model, quote(without_advice(error.message), hide=hide))
    return _translate_sdk_error(error, model, tuple(hide))


def _translate_api_error(error: ModelAPIError, model: str, hide: tuple[str, ...]) -> WakefulError:
    status = error.status_code if isinstance(error, ModelHTTPError) else None
    words = quote(words_of(error.body) if error.body else without_advice(error.message), hide=hide)
    problem = words if status is None else f"{words} (HTTP {status})"
    kind = _kind_of(error, status, words)
    if error.in_stream:
        return ModelCutOff(model, problem, status=status)
    is_passing = isinstance(error, ModelConnectionError | ModelRequestTimeout) or (
        status is not None and is_busy(status)
    )
    if is_passing and not isinstance(error, ModelQuotaExceededError) and not is_untrusted(error):
        return ModelBusy(model, problem, retry_after=error.retry_after, status=status, kind=kind)
    return ModelFailed(model, problem, status=status, kind=kind)


def _kind_of(error: ModelAPIError, status: int | None, words: str) -> Problem:
    if isinstance(error, ModelQuotaExceededError) or status == 402:
        return "quota"
    if status in (401, 403):
        return "key"
    if status == 404:
        return "model" if "model" in words.lower() else "address"
    if isinstance(error, ModelConnectionError):
        return "tls" if is_untrusted(error) else "address"
    if isinstance(error, ModelRequestTimeout):
        return "timeout"
    return "busy" if status is not None and is_busy(status) else "refused"


def _own_error(error: BaseException) -> WakefulError | None:
    """Return our own error, also from inside an SDK's connection error."""
    inner: BaseException | None = error
    while inner is not None and not isinstance(inner, WakefulError):
        inner = inner.__cause__
    return inner


def missing_package(model: str, error: ImportError) -> ProviderMissing:
    """Return the error for a provider whose package is not installed."""
    inner = error.__cause__ if isinstance(error.__cause__, ImportError) else error
    package = (inner.name or "").partition(".")[0]
    if package in ("boto3", "botocore"):
        return ProviderMissing(model, "Install Wakeful with its extra `bedrock`: pip install 'wakeful[bedrock]'.")
    named = f"the package {package!r}" if package else f"its package ({quote(without_advice(str(inner)))})"
    return ProviderMissing(model, f"Install {named} into Wakeful's environment.")


def without_advice(text: str) -> str:
    """Return a library's words without sentences that are advice for its programmers."""
    kept = [each for each in _SENTENCE.split(text) if not _LIBRARY.search(each)]
    return " ".join(kept) or "it is not set up."


def variables_in(text: str) -> list[str]:
    """Return the environment variables that a library's error names."""
    return list(dict.fromkeys(_VARIABLE.findall(text)))


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
