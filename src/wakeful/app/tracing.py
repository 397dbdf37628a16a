"""Builds the tracing of a node, if the owner has set a collector."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING

from wakeful.app.base import NodeBase
from wakeful.config.settings import Settings, read_headers, secrets_of
from wakeful.core.errors import Invalid
from wakeful.operations.metrics import Metrics
from wakeful.telemetry.redaction import find_redactor
from wakeful.telemetry.tracing import Tracing

if TYPE_CHECKING:
    from wakeful.telemetry.otel import OtlpExporter


OnSent = Callable[[str, int], None]

INSTALL = (
    "Install Wakeful with its extra `otel`: pip install 'wakeful[otel]'. Or remove otel_endpoint from wakeful.toml."
)
_NEEDED = ("opentelemetry.sdk.trace", "opentelemetry.exporter.otlp.proto.common.trace_encoder")


class OtelMissing(Invalid):
    code = "otel_missing"

    def __init__(self, endpoint: str) -> None:
        super().__init__(f"otel_endpoint is {endpoint!r}, but the OpenTelemetry SDK is not installed. {INSTALL}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Traces:
    """The tracing of a node, and how it ends."""

    tracing: Tracing
    stop: Callable[[], None] = lambda: None

    async def aclose(self) -> None:
        """Send what is left."""
        await asyncio.to_thread(self.stop)


def is_otel_installed() -> bool:
    """Return whether the extra `otel` is installed."""
    try:
        return all(find_spec(name) is not None for name in _NEEDED)
    except ModuleNotFoundError:  # a package around it is missing
        return False


def make_exporter(settings: Settings, on_sent: OnSent = lambda _outcome, _spans: None) -> "OtlpExporter":
    """Make the connection to the collector of the settings."""
    from wakeful.telemetry.otel import OtlpExporter

    headers = {} if settings.otel_headers is None else read_headers(settings.otel_headers.get_secret_value())
    return OtlpExporter(settings.otel_endpoint or "", headers, on_sent)


def build_tracing(base: NodeBase, metrics: Metrics) -> Traces:
    settings = base.settings
    if settings.otel_endpoint is None:
        return Traces(tracing=Tracing())
    if not is_otel_installed():
        raise OtelMissing(settings.otel_endpoint)
    from wakeful.telemetry.otel import OtelSpans

    exporter = make_exporter(settings, metrics.note_spans)
    redact = find_redactor(frozenset(secrets_of(settings)))
    spans = OtelSpans(exporter, base.node, has_content=settings.otel_content, redact=redact)

    def stop() -> None:
        exporter.hurry()
        spans.stop()

    return Traces(tracing=Tracing(spans.begin), stop=stop)
