"""Requests for lists and facts of models: JSON of limited size, whose values may be missing or of another type."""

from collections.abc import AsyncGenerator, Iterable, Mapping
from contextlib import asynccontextmanager
from typing import Any, cast

import httpx2
import orjson

from wakeful.core.errors import Unavailable
from wakeful.models.endpoint import is_page, key_headers, kind_of, make_client, origin_of, phrase
from wakeful.models.errors import is_untrusted, quote, words_of
from wakeful.models.providers import Provider
from wakeful.models.rules import Problem

MAX_TEXT = 200  # characters of an id or a label


def objects(value: Any, name: str) -> list[Mapping[str, Any]] | None:
    """Return the objects in a list field; None if there is no such list."""
    listed: Any = cast("Mapping[str, Any]", value).get(name) if isinstance(value, Mapping) else None
    if not isinstance(listed, list):
        return None
    return [cast("Mapping[str, Any]", each) for each in cast("list[Any]", listed) if isinstance(each, Mapping)]


def as_object(value: Any) -> Mapping[str, Any]:
    """Return a JSON object; an empty one if it is something else."""
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else {}


def inner(value: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    return as_object(value.get(name))


def text(value: Any) -> str | None:
    """Return a printable text without blanks around it, if it is one of a reasonable length."""
    if not isinstance(value, str):
        return None
    plain = value.strip()
    return plain if plain and len(plain) <= MAX_TEXT and plain.isprintable() else None


def number(*values: Any) -> int | None:
    """Return the first of these that is a positive whole number."""
    for value in values:
        if isinstance(value, int) and not isinstance(value, bool) and value > 0:
            return value
    return None


def price(value: Any) -> float | None:
    """Return dollars per million tokens, from dollars per token in a text."""
    try:
        per_token = float(value)
    except (TypeError, ValueError):
        return None
    return round(per_token * 1_000_000, 6) if 0 <= per_token < 1 else None


def flag(value: Any) -> bool | None:
    return value if isinstance(value, bool) else None


def has(value: Any, word: str) -> bool | None:
    """Return whether a list contains a word; None if it is not a list."""
    return word in cast("Iterable[Any]", value) if isinstance(value, list) else None


MAX_BYTES = 16 * 1024 * 1024  # of a list; OpenRouter's has 2 MB
SECONDS = 15.0
_FIELDS: Mapping[Problem, str] = {"key": "key", "address": "address", "tls": "address", "not_a_model": "address"}


class EndpointFailed(Unavailable):
    """An endpoint that was asked about its models did not answer as it should."""

    code = "endpoint_failed"

    def __init__(self, message: str, kind: Problem, status: int | None = None) -> None:
        super().__init__(message, field=_FIELDS.get(kind))
        self.kind: Problem = kind
        self.status = status


class Asking:
    """One endpoint that is being asked about its models."""

    def __init__(self, provider: Provider, address: str, client: httpx2.AsyncClient, secrets: tuple[str, ...]) -> None:
        self._provider = provider
        self.address = address.partition("?")[0].rstrip("/")
        self._client = client
        self._secrets = secrets
        self._who = f"{provider.label} at {origin_of(address)}"
        self._advice = "Is it running?" if provider.is_local else "Check the address."

    @property
    def root(self) -> str:
        """Return the address without the path of the compatible API."""
        return self.address.removesuffix("/v1")

    async def get(self, url: str) -> Any:
        return await self._ask("GET", url)

    async def post(self, url: str, body: object) -> Any:
        return await self._ask("POST", url, orjson.dumps(body))

    def unreadable(self) -> EndpointFailed:
        return EndpointFailed(
            f"{self._who} sent a list of models that cannot be read. Is the address right?", "address"
        )

    async def _ask(self, method: str, url: str, content: bytes | None = None) -> Any:
        try:
            async with self._client.stream(method, url, content=content) as response:
                body = await _read(response)
        except (httpx2.InvalidURL, httpx2.UnsupportedProtocol) as error:
            raise EndpointFailed(f"{url!r} is not an address ({quote(str(error))}).", "address") from error
        except httpx2.TimeoutException as error:
            problem = f"{self._who} did not answer within {SECONDS:g} s. {self._advice}"
            raise EndpointFailed(problem, "timeout") from error
        except httpx2.TransportError as error:
            raise self._unreachable(error) from error
        if response.status_code != 200 or body is None:
            raise self._refusal(response, body)
        return body

    def _unreachable(self, error: httpx2.TransportError) -> EndpointFailed:
        if is_untrusted(error):
            return EndpointFailed(f"{self._who} has a certificate that is not trusted ({quote(str(error))}).", "tls")
        return EndpointFailed(f"{self._who} cannot be reached ({quote(str(error))}). {self._advice}", "address")

    def _refusal(self, response: httpx2.Response, body: object) -> EndpointFailed:
        status = response.status_code
        if response.is_redirect:
            to = origin_of(str(response.headers.get("location", "")))
            problem = f"{self._who} redirects to {quote(to)}, and redirects are not followed. Use that address."
            return EndpointFailed(problem, "address", status)
        if status == 200:
            problem = f"{self._who} answered with something that is not JSON, such as a web page. Is the address right?"
            return EndpointFailed(problem, "not_a_model", status)
        words = phrase(status) if body is None or is_page(body) else quote(words_of(body), hide=self._secrets)
        kind = kind_of(status, body or "")
        if kind == "key":
            given = "refused the key" if self._secrets else "needs a key"
            return EndpointFailed(f"{self._who} {given}: {words} (HTTP {status})", kind, status)
        hint = " Is the address right?" if kind == "address" else ""
        return EndpointFailed(f"{self._who} gave no list of its models: {words} (HTTP {status}).{hint}", kind, status)


@asynccontextmanager
async def asking(
    provider: Provider,
    address: str,
    key: str | None,
    *,
    seconds: float = SECONDS,
    is_checked: bool = True,
    is_loopback_only: bool = False,
) -> AsyncGenerator[Asking]:
    """Ask an endpoint; `is_checked` checks the addresses that are connected to."""
    client = make_client(
        address,
        {"Accept": "application/json", "Content-Type": "application/json", "User-Agent": "wakeful"}
        | _key_headers(provider, key),
        has_key=key is not None,
        is_checked=is_checked,
        is_loopback_only=is_loopback_only,
        timeout=httpx2.Timeout(seconds),
    )
    async with client:
        yield Asking(provider, address, client, (key,) if key else ())


def _key_headers(provider: Provider, key: str | None) -> dict[str, str]:
    if provider.wire == "anthropic":
        return {"anthropic-version": "2023-06-01"} | ({} if key is None else {"x-api-key": key})
    if provider.wire == "google":
        return {} if key is None else {"x-goog-api-key": key}
    return key_headers(provider.dialect, key)


async def _read(response: httpx2.Response) -> Any:
    """Return the JSON of a response; None if it is not JSON, or too large."""
    text = bytearray()
    async for chunk in response.aiter_bytes():
        text += chunk
        if len(text) > MAX_BYTES:
            return None
    try:
        return orjson.loads(bytes(text))
    except orjson.JSONDecodeError:
        return None if response.status_code == 200 else bytes(text[:2_000]).decode("utf-8", "replace")
