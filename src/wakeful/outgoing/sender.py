"""Runs the child process that checks the addresses of channels, and sends."""

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
from wakeful.outgoing.rules import Answer, Mail, Request

_COMMAND = (sys.executable, "-I", "-m", "wakeful.outgoing.worker")
_PASSED_ON = ("LANG", "LC_ALL", "PATH", "SSL_CERT_DIR", "SSL_CERT_FILE", "TZ")  # no secrets, no proxies
_MAX_INSPECTED = 2  # at once
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


class Sender:
    """Starts a child process for each call, and kills it after the time limit."""

    def __init__(self, private_hosts: Collection[str], *, inspect_seconds: float = 20.0) -> None:
        self.private_hosts = sorted(private_hosts)
        self._inspect_seconds = inspect_seconds
        self._inspecting = asyncio.Semaphore(_MAX_INSPECTED)

    async def inspect(self, url: str) -> Inspected:
        async with self._inspecting:
            answers = await self._run({"inspect": url}, self._inspect_seconds)
        if not answers:
            raise ChannelsUnavailable(
                f"The address could not be checked within {self._inspect_seconds:g} s. Try again."
            )
        return Inspected(**answers[0])

    async def send(self, groups: Sequence[Mapping[str, Request | Mail]], seconds: float) -> dict[str, Answer]:
        """Send requests by their ids, and return the answers that came in time.

        Those of a group are sent in order, the groups at the same time. The first of a group without an answer may or
        may not have arrived; those behind it were not sent.
        """
        written = [[{"id": each, **_write(request)} for each, request in group.items()] for group in groups]
        answers = await self._run({"send": written, "private_hosts": self.private_hosts}, seconds)
        return {answer.pop("id"): Answer(**answer) for answer in answers}

    async def _run(self, request: Mapping[str, Any], seconds: float) -> list[dict[str, Any]]:
        """Return the answers that arrive in time."""
        answers: list[dict[str, Any]] = []
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
                async with asyncio.timeout(seconds):
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


def _write(request: Request | Mail) -> dict[str, Any]:
    if isinstance(request, Mail):
        return {"url": request.url, "title": request.title, "text": request.text}
    return {
        "url": request.url,
        "headers": {"User-Agent": "wakeful", **request.headers},
        "body": b64encode(request.body).decode(),
        "seconds": request.seconds,
        "pauses": request.pauses,
    }
