"""How the server reaches the process in which channels are looked at and sent to."""

import asyncio
import contextlib
import os
import sys
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from wakeful.domain.errors import Unavailable

_COMMAND = (sys.executable, "-I", "-m", "wakeful.service.inbox.channel_worker")
_PASSED_ON = ("LANG", "LC_ALL", "PATH", "SSL_CERT_DIR", "SSL_CERT_FILE", "TZ")  # no secrets of ours, and no proxies
_MAX_PROCESSES = 2
_MAX_LINE = 64 * 1024


class ChannelsUnavailable(Unavailable):
    code = "channels_unavailable"


@dataclass(frozen=True, slots=True, kw_only=True)
class Looked:
    """What is known of an address without sending to it."""

    schema: str
    host: str | None  # None: it names none, or perhaps a token stands in its place
    goes_to: list[str]  # hosts and addresses that it may be sent to, for a check; a secret is not among them
    problem: str | None


class ChannelProcess:
    """Starts a process for each order, and ends it when its time is over."""

    def __init__(self, *, private_hosts: Collection[str], seconds: float) -> None:
        self._private_hosts = sorted(private_hosts)
        self.seconds = seconds
        self._free = asyncio.Semaphore(_MAX_PROCESSES)

    async def look(self, url: str) -> Looked:
        """Ask what a URL is about."""
        answers = await self._order({"look": url})
        if not answers:
            raise ChannelsUnavailable(f"The address could not be looked at within {self.seconds:g} s. Try again.")
        return Looked(**answers[0])

    async def send(self, addresses: Mapping[str, str], title: str, body: str) -> dict[str, str | None]:
        """Send to addresses and return, for each that was done with in time, why it failed, or None."""
        order = {"send": addresses, "title": title, "body": body, "private_hosts": self._private_hosts}
        return {answer["id"]: answer["error"] for answer in await self._order(order)}

    async def _order(self, order: Mapping[str, Any]) -> list[Mapping[str, Any]]:
        """Return the answers that come in time."""
        answers: list[Mapping[str, Any]] = []
        async with self._free:
            process = await asyncio.create_subprocess_exec(
                *_COMMAND,
                stdin=asyncio.subprocess.PIPE,  # not its arguments: those can be seen by everyone on this machine
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
                        process.stdin.write(orjson.dumps(order))
                        process.stdin.close()
                        while line := await process.stdout.readline():
                            answers.append(orjson.loads(line))
            finally:
                with contextlib.suppress(ProcessLookupError):
                    process.kill()
                await process.wait()
        return answers
