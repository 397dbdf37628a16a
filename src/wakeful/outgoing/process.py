"""Runs the child process that checks channel addresses and sends to them."""

import asyncio
import contextlib
import os
import signal
import sys
from base64 import b64encode
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from wakeful.core.errors import Unavailable
from wakeful.outgoing.rules import Reply

_COMMAND = (sys.executable, "-I", "-m", "wakeful.outgoing.worker")
_PASSED_ON = ("LANG", "LC_ALL", "PATH", "SSL_CERT_DIR", "SSL_CERT_FILE", "TZ")  # no secrets, no proxies
_MAX_PROCESSES = 2
_MAX_LINE = 64 * 1024


class ChannelsUnavailable(Unavailable):
    code = "channels_unavailable"


@dataclass(frozen=True, slots=True, kw_only=True)
class Inspected:
    """The facts about an address that are known without sending to it."""

    schema: str
    host: str | None  # None: it has none, or the place of the host may hold a token
    goes_to: list[str]  # hosts and IP addresses to check; never a secret
    problem: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PushRequest:
    """An encrypted message to a push service."""

    endpoint: str
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class PushAnswer:
    """The answer of a push service."""

    status: int | None = None  # None: there was no answer
    error: str | None = None  # None: the service has taken the message
    retry_after: int | None = None  # seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class PingRequest:
    """A ping of a monitoring service. Those of one group are sent in order."""

    id: str
    group: str
    url: str
    body: str  # a reason code


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookRequest:
    """A signed message to another system."""

    url: str
    headers: Mapping[str, str]
    body: bytes


class ChannelProcess:
    """Starts a child process for each request, and kills it after the time limit."""

    def __init__(self, *, private_hosts: Collection[str], seconds: float) -> None:
        self.private_hosts = sorted(private_hosts)
        self.seconds = seconds
        self._free = asyncio.Semaphore(_MAX_PROCESSES)

    async def inspect(self, url: str) -> Inspected:
        answers = await self._request({"inspect": url})
        if not answers:
            raise ChannelsUnavailable(f"The address could not be checked within {self.seconds:g} s. Try again.")
        return Inspected(**answers[0])

    async def send(self, addresses: Mapping[str, str], title: str, body: str) -> dict[str, str | None]:
        """Send to addresses, and return the error of each that finished in time; None: it was sent."""
        request = {"send": addresses, "title": title, "body": body, "private_hosts": self.private_hosts}
        return {answer["id"]: answer["error"] for answer in await self._request(request)}

    async def push(self, messages: Mapping[str, PushRequest]) -> dict[str, PushAnswer]:
        """Send push messages, and return the answer to each that came in time."""
        written = {
            each: {"endpoint": it.endpoint, "headers": it.headers, "body": b64encode(it.body).decode()}
            for each, it in messages.items()
        }
        answers = await self._request({"push": written, "private_hosts": self.private_hosts})
        known = ("status", "error", "retry_after")
        return {answer["id"]: PushAnswer(**{name: answer.get(name) for name in known}) for answer in answers}

    async def ping(self, pings: Sequence[PingRequest]) -> dict[str, str]:
        """Send pings, and return the outcome of each that ended in time: `sent`, or a code of what went wrong."""
        groups: dict[str, list[dict[str, str]]] = {}
        for each in pings:
            groups.setdefault(each.group, []).append({"id": each.id, "url": each.url, "body": each.body})
        answers = await self._request({"ping": list(groups.values()), "private_hosts": self.private_hosts})
        return {answer["id"]: answer["outcome"] for answer in answers}

    async def post(self, messages: Mapping[str, WebhookRequest]) -> dict[str, Reply]:
        """Send messages of webhooks, each once, and return the answer to each that came in time."""
        written = {
            each: {"url": it.url, "headers": it.headers, "body": b64encode(it.body).decode()}
            for each, it in messages.items()
        }
        answers = await self._request({"post": written, "private_hosts": self.private_hosts})
        known = ("status", "error", "retry_after")
        return {answer["id"]: Reply(**{name: answer.get(name) for name in known}) for answer in answers}

    async def _request(self, request: Mapping[str, Any]) -> list[Mapping[str, Any]]:
        """Return the answers that arrive in time."""
        answers: list[Mapping[str, Any]] = []
        async with self._free:
            process = await asyncio.create_subprocess_exec(
                *_COMMAND,
                stdin=asyncio.subprocess.PIPE,  # not arguments, which every user of the machine can see
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.DEVNULL,
                env={name: os.environ[name] for name in _PASSED_ON if name in os.environ},
                limit=_MAX_LINE,
            )
            assert process.stdin is not None
            assert process.stdout is not None
            try:
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(self.seconds):
                        process.stdin.write(orjson.dumps(request))
                        process.stdin.close()
                        while line := await process.stdout.readline():
                            answers.append(orjson.loads(line))
            finally:
                if process.returncode is None:
                    with contextlib.suppress(ProcessLookupError):
                        # Not process.kill(), which reads the exit status of a child that has just ended. asyncio then
                        # logs "Unknown child process".
                        os.kill(process.pid, signal.SIGKILL)
                await process.wait()
        return answers
