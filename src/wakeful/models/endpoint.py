"""HTTP to endpoints of models: chat completions with one client for all runs, and the errors of a provider."""

import asyncio
import ipaddress
import ssl
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from email.utils import parsedate_to_datetime
from functools import cache
from http.client import responses
from typing import Any
from urllib.parse import quote as quote_path
from urllib.parse import urlsplit, urlunsplit

import httpcore2
import httpx2
import orjson

from wakeful.core.errors import WakefulError
from wakeful.core.outgoing import resolve
from wakeful.models.errors import ModelBusy, ModelFailed, is_busy, is_untrusted, quote, words_of
from wakeful.models.providers import OPENAI, Dialect, check_ip, is_plain_http
from wakeful.models.rules import Problem

MAX_ERROR_BYTES = 64 * 1024
SPENT = frozenset({"insufficient_quota", "billing_hard_limit_reached"})  # a 429 that waiting does not help


class Endpoint:
    """URL, key and connections of a provider. With `is_checked`, each address is checked when it is connected to."""

    def __init__(
        self,
        base_url: str | None = None,
        api_key: str | None = None,
        *,
        dialect: Dialect | None = None,
        is_checked: bool = False,
    ) -> None:
        parts = urlsplit((base_url or OPENAI).rstrip("/"))
        self._query = parts.query
        self.base_url = urlunsplit(parts._replace(query="", path=parts.path.rstrip("/")))
        self.origin = origin_of(self.base_url)
        self.secrets = (api_key,) if api_key else ()
        self._dialect = dialect or Dialect()
        self._is_checked = is_checked
        self._client: httpx2.AsyncClient | None = None
        self._draining: set[asyncio.Task[None]] = set()

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
        self, shown: str, body: dict[str, Any], on_sent: Callable[[], None], path: str = "chat/completions"
    ) -> AsyncGenerator[httpx2.Response]:
        """Send a request and yield the response when its headers have arrived; raise if it is an error.

        `shown` is the model's name in errors. `on_sent` is called when the request is sent and the provider's time
        starts.
        """
        try:
            response = await self._send(self._url(path, body), body, on_sent)
        except (httpx2.InvalidURL, httpx2.UnsupportedProtocol) as error:
            raise ModelFailed(shown, f"{self.base_url!r} is not an address ({error}).", kind="address") from error
        except httpx2.TransportError as error:
            problem = f"{self.origin} cannot be reached ({quote(str(error)) or type(error).__name__})."
            is_tls = is_untrusted(error)
            raise (ModelFailed if is_tls else ModelBusy)(shown, problem, kind="tls" if is_tls else "address") from error
        try:
            if response.status_code != 200:
                raise await self._refusal(shown, response)
            if response.headers.get("content-type", "").startswith("text/html"):
                problem = f"{self.origin} answered with a web page. Is the address right?"
                raise ModelFailed(shown, problem, status=200, kind="not_a_model")
            yield response
        finally:
            await response.aclose()

    def _url(self, path: str, body: dict[str, Any]) -> str:
        if not self._query:
            return f"{self.base_url}/{path}"
        # Azure's dated API has the deployment in its path.
        deployment = quote_path(str(body["model"]), safe="")
        return f"{self.base_url}/openai/deployments/{deployment}/{path}?{self._query}"

    async def _send(self, url: str, body: dict[str, Any], on_sent: Callable[[], None]) -> httpx2.Response:
        client = self._client = self._client or self._connect()
        is_fresh = False

        async def note(event: str, _: object) -> None:
            nonlocal is_fresh
            is_fresh = is_fresh or event == "connection.connect_tcp.started"
            if event.endswith(".receive_response_headers.started"):
                on_sent()

        request = client.build_request("POST", url, content=orjson.dumps(body), extensions={"trace": note})
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
        headers |= key_headers(self._dialect, *self.secrets)
        # `Reading` measures silence; the client has a timeout for connecting only.
        return make_client(self.base_url, headers, has_key=bool(self.secrets), is_checked=self._is_checked)

    async def _refusal(self, shown: str, response: httpx2.Response) -> WakefulError:
        status = response.status_code
        if response.is_redirect:
            to = origin_of(str(response.headers.get("location", "")))
            problem = (
                f"{self.origin} redirects to {to}, and redirects are not followed (HTTP {status}). Use that address."
            )
            return ModelFailed(shown, quote(problem), status=status, kind="address")
        body = await _read_error(response)
        words = phrase(status) if is_page(body) else quote(words_of(body), hide=self.secrets) or phrase(status)
        problem = f"{words} (HTTP {status})"
        kind = kind_of(status, body)
        if is_busy(status) and kind != "quota":
            return ModelBusy(shown, problem, retry_after=_retry_after(response.headers), status=status, kind=kind)
        return ModelFailed(shown, problem, status=status, kind=kind)


def key_headers(dialect: Dialect, key: str | None = None) -> dict[str, str]:
    """Return the headers that a key is sent in."""
    if key is None:
        return {}
    return {dialect.key_header: f"Bearer {key}" if dialect.key_header == "Authorization" else key}


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


def is_page(body: object) -> bool:
    """Return whether this is an HTML page of a proxy, which says no more than the status."""
    return isinstance(body, str) and body.lstrip().startswith("<")


def phrase(status: int) -> str:
    return responses.get(status, "an error without a message")


def kind_of(status: int, body: object) -> Problem:
    """Return the kind of failure that a status and its body mean."""
    if _is_spent(body) or status == 402:
        return "quota"
    if status in (401, 403):
        return "key"
    if status == 404:
        return "address" if is_page(body) or "model" not in words_of(body).lower() else "model"
    return "busy" if is_busy(status) else "refused"


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


# Connections to endpoints of models: every address is checked when connecting, and redirects are not followed.


CONNECT_SECONDS = 30.0
KEEPALIVE_SECONDS = 60.0


class CheckedBackend(httpcore2.AsyncNetworkBackend):
    """Opens TCP connections to addresses that pass the check, and to exactly those: DNS cannot change in between."""

    def __init__(self, *, has_plain_key: bool, is_loopback_only: bool = False) -> None:
        self._inner: Any = httpcore2.AnyIOBackend()  # untyped, because anyio is optional there
        self._has_plain_key = has_plain_key
        self._is_loopback_only = is_loopback_only

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109  (the library's signature)
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        *first, last = await self._addresses(host)
        for address in first:
            try:
                return await self._inner.connect_tcp(address, port, timeout, local_address, socket_options)
            except (httpcore2.ConnectError, httpcore2.ConnectTimeout):  # such as an IPv6 address without IPv6
                continue
        return await self._inner.connect_tcp(last, port, timeout, local_address, socket_options)

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    async def _addresses(self, host: str) -> list[str]:
        addresses = await resolve(host)
        if not addresses:
            raise httpcore2.ConnectError(f"the host {host!r} has no address")
        for address in addresses:
            parsed = ipaddress.ip_address(address.partition("%")[0])
            check_ip(host, parsed, has_plain_key=self._has_plain_key)
            if self._is_loopback_only and not parsed.is_loopback:
                raise httpcore2.ConnectError(f"the host {host!r} is not this machine")
        return addresses


class CheckedTransport(httpx2.AsyncHTTPTransport):
    """A connection pool whose connections are checked."""

    def __init__(self, backend: CheckedBackend) -> None:
        super().__init__(verify=tls_context())
        self._pool = httpcore2.AsyncConnectionPool(
            ssl_context=tls_context(),
            max_connections=None,
            keepalive_expiry=KEEPALIVE_SECONDS,
            network_backend=backend,
        )


def make_client(
    address: str,
    headers: Mapping[str, str],
    *,
    has_key: bool,
    is_checked: bool = True,
    is_loopback_only: bool = False,
    timeout: httpx2.Timeout | None = None,
) -> httpx2.AsyncClient:
    """Make a client for one endpoint; `timeout` limits connecting alone if it is not given."""
    timeout = timeout or httpx2.Timeout(None, connect=CONNECT_SECONDS)
    if not is_checked:
        limits = httpx2.Limits(max_connections=None, keepalive_expiry=KEEPALIVE_SECONDS)
        return httpx2.AsyncClient(headers=headers, timeout=timeout, limits=limits, verify=tls_context())
    is_plain = is_plain_http(address)
    backend = CheckedBackend(has_plain_key=has_key and is_plain, is_loopback_only=is_loopback_only)
    # A proxy of the environment would resolve the name itself, past the check. It is used with https, where the
    # certificate identifies the host that the key goes to.
    return httpx2.AsyncClient(
        headers=headers,
        timeout=timeout,
        transport=CheckedTransport(backend),
        trust_env=not is_plain and not is_loopback_only,
        follow_redirects=False,
    )


@cache
def tls_context() -> ssl.SSLContext:
    """Return the TLS context; the certificates are read once."""
    return httpx2.create_ssl_context()
