"""HTTP of chat completions: one client for all runs, and the errors of a provider."""

import asyncio
import ssl
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from email.utils import parsedate_to_datetime
from functools import cache
from http.client import responses
from typing import Any
from urllib.parse import urlsplit

import httpx2
import orjson

from wakeful.domain.errors import WakefulError
from wakeful.runtime.models.errors import ModelBusy, ModelFailed, is_busy, is_untrusted, quote, words_of

OPENAI = "https://api.openai.com/v1"
CONNECT_SECONDS = 30.0
KEEPALIVE_SECONDS = 60.0
MAX_ERROR_BYTES = 64 * 1024
SPENT = frozenset({"insufficient_quota", "billing_hard_limit_reached"})  # a 429 that waiting does not help


class Endpoint:
    """URL, key and connections of an OpenAI-compatible provider."""

    def __init__(self, base_url: str | None = None, api_key: str | None = None) -> None:
        self.base_url = (base_url or OPENAI).rstrip("/")
        self.origin = origin_of(self.base_url)
        self.secrets = (api_key,) if api_key else ()
        self._client: httpx2.AsyncClient | None = None
        self._draining: set[asyncio.Task[None]] = set()

    @property
    def is_openai(self) -> bool:
        return self.base_url == OPENAI

    def __repr__(self) -> str:
        return f"Endpoint({self.base_url!r})"

    def let_finish(self, task: asyncio.Task[None]) -> None:
        """Let a complete stream read its last bytes in the background, so that its connection can be reused."""
        self._draining.add(task)
        task.add_done_callback(self._draining.discard)

    async def aclose(self) -> None:
        for task in tuple(self._draining):
            task.cancel()
        await asyncio.gather(*self._draining, return_exceptions=True)
        if self._client is not None:
            await self._client.aclose()
            self._client = None

    @asynccontextmanager
    async def ask(
        self, model: str, body: dict[str, Any], on_sent: Callable[[], None]
    ) -> AsyncGenerator[httpx2.Response]:
        """Send a request and yield the response when its headers have arrived; raise if it is an error.

        `on_sent` is called when the request is sent and the provider's time starts.
        """
        try:
            response = await self._send(body, on_sent)
        except (httpx2.InvalidURL, httpx2.UnsupportedProtocol) as error:
            raise ModelFailed(model, f"{self.base_url!r} is not an address ({error}).") from error
        except httpx2.TransportError as error:
            problem = f"{self.origin} cannot be reached ({quote(str(error)) or type(error).__name__})."
            raise (ModelFailed if is_untrusted(error) else ModelBusy)(model, problem) from error
        try:
            if response.status_code != 200:
                raise await self._refusal(model, response)
            yield response
        finally:
            await response.aclose()

    async def _send(self, body: dict[str, Any], on_sent: Callable[[], None]) -> httpx2.Response:
        client = self._client = self._client or self._connect()
        is_fresh = False

        async def note(event: str, _: object) -> None:
            nonlocal is_fresh
            is_fresh = is_fresh or event == "connection.connect_tcp.started"
            if event.endswith(".receive_response_headers.started"):
                on_sent()

        request = client.build_request(
            "POST", f"{self.base_url}/chat/completions", content=orjson.dumps(body), extensions={"trace": note}
        )
        try:
            return await client.send(request, stream=True)
        except (httpx2.ReadError, httpx2.RemoteProtocolError, httpx2.WriteError):
            # The provider closed an idle connection just as it was used: retry. It closed a new one because of the
            # request itself, which it may have started to process: there the loop decides.
            if is_fresh:
                raise
        return await client.send(request, stream=True)

    def _connect(self) -> httpx2.AsyncClient:
        headers = {
            "Accept": "text/event-stream",
            "Accept-Encoding": "identity",  # compression would delay pieces
            "Content-Type": "application/json",
            "User-Agent": "wakeful",
        }
        if self.secrets:
            headers["Authorization"] = f"Bearer {self.secrets[0]}"
        return httpx2.AsyncClient(
            headers=headers,
            # `Reading` measures silence; the client has a timeout for connecting only.
            timeout=httpx2.Timeout(None, connect=CONNECT_SECONDS),
            limits=httpx2.Limits(max_connections=None, keepalive_expiry=KEEPALIVE_SECONDS),
            verify=_tls_context(),
        )

    async def _refusal(self, model: str, response: httpx2.Response) -> WakefulError:
        status = response.status_code
        body = await _read_error(response)
        words = _phrase(status) if _is_page(body) else quote(words_of(body), hide=self.secrets) or _phrase(status)
        problem = f"{words} (HTTP {status})"
        if is_busy(status) and not _is_spent(body):
            return ModelBusy(model, problem, retry_after=_retry_after(response.headers), status=status)
        return ModelFailed(model, problem, status=status)


async def _read_error(response: httpx2.Response) -> object:
    text = b""
    try:
        async for chunk in response.aiter_bytes():
            text += chunk
            if len(text) > MAX_ERROR_BYTES:
                break
    except httpx2.TransportError:
        pass  # the status is enough
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return text.decode("utf-8", "replace")


def origin_of(url: str) -> str:
    """Return scheme, host and port of a URL: the part that may be shown."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"


def _is_page(body: object) -> bool:
    """Return whether this is an HTML page of a proxy, which says no more than the status."""
    return isinstance(body, str) and body.lstrip().startswith("<")


def _phrase(status: int) -> str:
    return responses.get(status, "an error without a message")


def _is_spent(body: Any) -> bool:
    error = body.get("error") if isinstance(body, dict) else None  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType]  (JSON)
    return isinstance(error, dict) and (error.get("code") in SPENT or error.get("type") in SPENT)  # pyright: ignore[reportUnknownMemberType]  (JSON)


def _retry_after(headers: httpx2.Headers) -> float | None:
    """Return the seconds to wait; a date is compared with the provider's own clock."""
    try:
        if "retry-after-ms" in headers:
            return max(0.0, float(headers["retry-after-ms"]) / 1000)
        if headers["retry-after"].strip().isdecimal():
            return float(headers["retry-after"])
        wait = parsedate_to_datetime(headers["retry-after"]) - parsedate_to_datetime(headers["date"])
    except (LookupError, TypeError, ValueError):
        return None
    return max(0.0, wait.total_seconds())


@cache
def _tls_context() -> ssl.SSLContext:
    """Return the TLS context; the certificates are read once."""
    return httpx2.create_ssl_context()
