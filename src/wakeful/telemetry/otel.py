"""Spans of the OpenTelemetry SDK. Imported only if a collector is set: the extra `otel` may be missing."""

import http.client
import logging
import re
import ssl
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, SpanLimits, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.sampling import ALWAYS_ON
from opentelemetry.trace import Link, NonRecordingSpan, SpanContext, Status, StatusCode, TraceFlags, set_span_in_context
from opentelemetry.trace import Span as ApiSpan
from opentelemetry.trace import SpanKind as ApiKind

from wakeful.core.records import NodeIdentity
from wakeful.telemetry import tracing as names
from wakeful.telemetry.tracing import Span, SpanKind

_TRACEPARENT = re.compile(r"00-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})")
_KINDS: dict[SpanKind, ApiKind] = {"internal": ApiKind.INTERNAL, "client": ApiKind.CLIENT}
_MAX_QUEUED = 8_192  # spans; beyond, the oldest are dropped
_EVERY_MS = 2_000  # the spans of a process that is killed are lost for as long as this
_MAX_TEXT = 65_536  # characters of one attribute
_STOP_MS = 3_000

Redact = Callable[[str], str]


class OtelSpans:
    """Begins spans, and sends those that have ended, in a thread of its own: a run never waits for a collector."""

    def __init__(
        self, exporter: SpanExporter, node: NodeIdentity, *, has_content: bool = False, redact: Redact = str
    ) -> None:
        self._has_content = has_content
        self._redact = redact
        # Everything is given here: the environment of the server, such as OTEL_TRACES_SAMPLER, changes nothing.
        self._provider = TracerProvider(
            sampler=ALWAYS_ON,
            resource=Resource(
                {
                    "service.name": "wakeful",
                    "service.version": node.version,
                    "service.instance.id": node.owner,
                    "host.name": node.name,
                },
                names.SCHEMA_URL,
            ),
            shutdown_on_exit=False,
            span_limits=SpanLimits(max_span_attribute_length=_MAX_TEXT),
        )
        self._batches = BatchSpanProcessor(
            exporter,
            max_queue_size=_MAX_QUEUED,
            schedule_delay_millis=_EVERY_MS,
            max_export_batch_size=512,
            export_timeout_millis=_STOP_MS,
        )
        self._provider.add_span_processor(self._batches)
        self._tracer = self._provider.get_tracer("wakeful", node.version, schema_url=names.SCHEMA_URL)

    def begin(
        self, name: str, kind: SpanKind, attributes: names.Attributes, *, within: Span | None, link: str | None
    ) -> Span:
        """Begin a span."""
        parent = within.recorded if isinstance(within, _Recorded) else None
        linked = None if link is None else _to_context(link)
        recorded = self._tracer.start_span(
            name,
            context=Context() if parent is None else set_span_in_context(parent, Context()),
            kind=_KINDS[kind],
            attributes=dict(attributes),
            links=() if linked is None else (Link(linked, {names.LINK: "follows"}),),
            record_exception=False,
            set_status_on_exception=False,
        )
        return _Recorded(recorded, self._redact if self._has_content else None)

    def flush(self) -> None:
        """Send the spans that have ended so far. Blocks."""
        self._batches.force_flush()

    def stop(self) -> None:
        """Send what is left, if the collector takes it. Blocks."""
        self._batches.shutdown()


class _Recorded(Span):
    def __init__(self, recorded: ApiSpan, redact: Redact | None) -> None:
        self.recorded = recorded
        self._redact = redact  # None: without content
        context = recorded.get_span_context()
        self.trace_id = f"{context.trace_id:032x}"
        self.traceparent = f"00-{self.trace_id}-{context.span_id:016x}-{context.trace_flags:02x}"

    def rename(self, name: str) -> None:
        self.recorded.update_name(name)

    def note(self, attributes: Mapping[str, Any]) -> None:
        self.recorded.set_attributes({name: value for name, value in attributes.items() if value is not None})

    def show(self, name: str, read: Callable[[], str]) -> None:
        if self._redact is not None:
            self.recorded.set_attribute(name, self._redact(read()))

    def fail(self, code: str) -> None:
        self.recorded.set_attribute(names.ERROR_TYPE, code)
        self.recorded.set_status(Status(StatusCode.ERROR, code))

    def end(self) -> None:
        self.recorded.end()


def _to_context(traceparent: str) -> SpanContext | None:
    found = _TRACEPARENT.fullmatch(traceparent)
    if found is None:
        return None
    context = SpanContext(int(found[1], 16), int(found[2], 16), True, TraceFlags(int(found[3], 16)))
    return NonRecordingSpan(context).get_span_context() if context.is_valid else None


# ── The exporter: OTLP over HTTP, without redirects ──────────────────────────────────────────────────────────────────

log = logging.getLogger(__name__)

_SECONDS = 3.0  # for one try
_PAUSES = (1.0, 4.0)  # seconds between the tries
_PATH = "/v1/traces"


class OtlpExporter(SpanExporter):
    """Sends spans to the address of the settings.

    The exporter of OpenTelemetry would follow redirects, read headers and addresses from the environment, and log each
    failure.
    """

    def __init__(
        self,
        endpoint: str,
        headers: Mapping[str, str],
        on_sent: Callable[[str, int], None] = lambda _outcome, _spans: None,
    ) -> None:
        parts = urlsplit(endpoint)
        self._host, self._port = parts.hostname or "", parts.port
        self._context = ssl.create_default_context() if parts.scheme == "https" else None
        self._path = parts.path if parts.path.endswith(_PATH) else parts.path.rstrip("/") + _PATH
        self._headers = {"Content-Type": "application/x-protobuf", "User-Agent": "wakeful", **headers}
        self._on_sent = on_sent
        self._is_stopping = threading.Event()
        self._last_outcome = "sent"

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        if self._is_stopping.is_set() and self._last_outcome != "sent":
            return SpanExportResult.FAILURE  # the end of the server does not wait for a collector that is unavailable
        body = encode_spans(spans).SerializeToString()
        outcome = ""
        for pause in (*_PAUSES, None):
            outcome, is_temporary = self._try(body)
            if not is_temporary or pause is None or self._is_stopping.wait(pause):
                break
        self._on_sent(outcome, len(spans))
        if outcome != self._last_outcome:  # once per change, not once per batch
            level = logging.INFO if outcome == "sent" else logging.WARNING
            log.log(level, "traces to the collector", extra={"outcome": outcome, "host": self._host})
        self._last_outcome = outcome
        return SpanExportResult.SUCCESS if outcome == "sent" else SpanExportResult.FAILURE

    def probe(self) -> str:
        """Send a request without spans, and return its outcome."""
        return self._try(b"")[0]

    def hurry(self) -> None:
        """Try once more at most: the server stops."""
        self._is_stopping.set()

    def shutdown(self) -> None:
        self.hurry()

    def _try(self, body: bytes) -> tuple[str, bool]:
        """Send once, and return the outcome and whether another try may help."""
        connection = (
            http.client.HTTPConnection(self._host, self._port, timeout=_SECONDS)
            if self._context is None
            else http.client.HTTPSConnection(self._host, self._port, timeout=_SECONDS, context=self._context)
        )
        try:
            connection.request("POST", self._path, body, self._headers)
            status = connection.getresponse().status
        except (OSError, http.client.HTTPException) as error:
            is_certificate = isinstance(error, ssl.SSLCertVerificationError)
            return ("certificate", False) if is_certificate else ("unreachable", True)
        finally:
            connection.close()
        if 200 <= status < 300:
            return "sent", False
        return ("redirect" if 300 <= status < 400 else "refused"), status == 429 or status >= 500
