"""Spans of the OpenTelemetry SDK. Imported only if a collector is set: the extra `otel` may be missing."""

import re
from collections.abc import Callable, Mapping
from typing import Any

from opentelemetry.context import Context
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import SpanLimits, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter
from opentelemetry.sdk.trace.sampling import ALWAYS_ON
from opentelemetry.trace import Link, NonRecordingSpan, SpanContext, Status, StatusCode, TraceFlags, set_span_in_context
from opentelemetry.trace import Span as ApiSpan
from opentelemetry.trace import SpanKind as ApiKind

from wakeful.domain.nodes import NodeIdentity
from wakeful.service.tracing import conventions as names
from wakeful.service.tracing.tracing import Span, SpanKind

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
