"""A small OpenTelemetry collector on a real socket: it takes traces over HTTP and keeps their spans."""

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from harness import eventually


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenSpan:
    """A span, as the collector received it."""

    name: str
    trace_id: str
    span_id: str
    parent_id: str
    links: tuple[tuple[str, str], ...]  # trace and span
    attributes: dict[str, Any]
    error: str
    resource: dict[str, Any]

    @property
    def place(self) -> tuple[str, str]:
        return self.trace_id, self.span_id


class OtlpServer:
    """Receives spans. `status` is how it answers; `bodies` are the requests as they came."""

    def __init__(self, status: int = 200) -> None:
        self.status = status
        self.bodies: list[bytes] = []
        self.paths: list[str] = []
        self.headers: list[dict[str, str]] = []
        self.spans: list[SeenSpan] = []
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler_of(self))
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)

    @property
    def origin(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def take(self, path: str, headers: dict[str, str], body: bytes) -> None:
        self.paths.append(path)
        self.headers.append(headers)
        self.bodies.append(body)
        if self.status == 200:
            self.spans += read_spans(body)

    async def has(self, condition: Callable[[Sequence[SeenSpan]], bool]) -> list[SeenSpan]:
        """Wait until the spans so far fulfil a condition, and return them."""

        async def holds() -> bool:
            return condition(self.spans)

        await eventually(holds)
        return list(self.spans)


def read_spans(body: bytes) -> list[SeenSpan]:
    """Parse a request of OTLP."""
    request = ExportTraceServiceRequest.FromString(body)
    return [
        SeenSpan(
            name=span.name,
            trace_id=span.trace_id.hex(),
            span_id=span.span_id.hex(),
            parent_id=span.parent_span_id.hex(),
            links=tuple((link.trace_id.hex(), link.span_id.hex()) for link in span.links),
            attributes={each.key: _value_of(each.value) for each in span.attributes},
            error=span.status.message,
            resource={each.key: _value_of(each.value) for each in resource.resource.attributes},
        )
        for resource in request.resource_spans
        for scope in resource.scope_spans
        for span in scope.spans
    ]


def _value_of(value: Any) -> Any:
    kind = value.WhichOneof("value")
    found = getattr(value, kind)
    return [_value_of(each) for each in found.values] if kind == "array_value" else found


def _handler_of(server: OtlpServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            server.take(self.path, {name.lower(): value for name, value in self.headers.items()}, body)
            self.send_response(server.status)
            if 300 <= server.status < 400:
                self.send_header("Location", "/elsewhere")
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Print nothing."""

    return Handler
