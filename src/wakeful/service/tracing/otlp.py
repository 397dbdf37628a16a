"""Sends spans to a collector: OTLP over HTTP, without redirects, and with a line in the log for each outage."""

import http.client
import logging
import ssl
import threading
from collections.abc import Callable, Mapping, Sequence
from urllib.parse import urlsplit

from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult

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
