"""The two clients: `Wakeful` waits for each answer, `AsyncWakeful` is for asyncio.

Both have the same methods. What they do is in `calls`; here is how requests are sent.
"""

from collections.abc import AsyncGenerator, Generator
from datetime import datetime, timedelta
from typing import Any, Self, TypeVar

import httpx2

from wakeful.client import calls
from wakeful.client.calls import Call, Calls, Question, Timing
from wakeful.client.connection import (
    TIMEOUT,
    Agent,
    Answer,
    AnswerReader,
    Decision,
    Wake,
    WakefulClientError,
    explained,
    find_target,
    options,
    read,
    refusal,
)

T = TypeVar("T")


class Wakeful:
    """A client of one server.

    Without arguments it talks to this machine's server, or to the one in the variables WAKEFUL_URL and WAKEFUL_TOKEN.
    Close it, or use it in a `with` block.
    """

    def __init__(self, url: str | None = None, token: str | None = None, *, timeout: float = TIMEOUT) -> None:
        self._target = find_target(url, token)
        self._http = httpx2.Client(**options(self._target, timeout))

    def __repr__(self) -> str:
        return f"Wakeful({self._target.url!r})"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._http.close()

    def agents(self) -> list[Agent]:
        """Return your agents."""
        return self._do(calls.agents())

    def ask(self, message: str, *, agent: str | None = None, session: str | None = None, system: str = "") -> Answer:
        """Send a message and return the agent's answer, when it has written all of it.

        `agent` is a name or an id; without it, your first agent. With `session` the conversation goes on there.
        """
        reply = self.stream(message, agent=agent, session=session, system=system)
        for _ in reply:
            pass
        return reply.answer

    def stream(
        self, message: str, *, agent: str | None = None, session: str | None = None, system: str = ""
    ) -> "Reply":
        """Send a message and return its answer as an iterator over the text, as it is written."""
        return Reply(self._read_answer, calls.question(message, agent, session, system))

    def book(
        self,
        instructions: str,
        *,
        when: str | datetime | None = None,
        every: timedelta | float | None = None,
        cron: str | None = None,
        timezone: str | None = None,
        agent: str | None = None,
        session: str | None = None,
        comment: str | None = None,
    ) -> Wake:
        """Book a wake: at a time ("in 10 minutes", "tomorrow at 9"), repeatedly, or without any of them at once.

        It runs in `session`, or in a new one. `every` is a time span, or a number of seconds.
        """
        timing = Timing(when=when, every=every, cron=cron, timezone=timezone)
        return self._do(calls.book(instructions, timing, agent=agent, session=session, comment=comment))

    def wakes(self, *, agent: str | None = None, ended: bool = False) -> list[Wake]:
        """Return the wakes that are still to come, the soonest first; with `ended`, also those that are over."""
        return self._do(calls.wakes(agent, is_live=not ended))

    def cancel(self, wake_id: str) -> None:
        """Cancel a wake that has not begun."""
        self._do(calls.cancel(wake_id))

    def why(self, wake_id: str) -> list[Decision]:
        """Return what was decided about each planned time of a wake, and why."""
        return self._do(calls.why(wake_id))

    def _do(self, steps: Calls[T]) -> T:
        answer: Any = None
        while True:
            try:
                call = steps.send(answer)
            except StopIteration as done:
                return done.value
            answer = self._send(call)

    def _send(self, call: Call) -> Any:
        with explained(self._target):
            return read(self._http.request(call.method, call.path, json=call.body))

    def _read_answer(self, reply: "Reply", steps: Calls[Question]) -> Generator[str]:
        question = self._do(steps)
        with (
            explained(self._target),
            self._http.stream("POST", question.path, json=question.body, headers=question.headers) as response,
        ):
            if not response.is_success:
                response.read()
                raise refusal(response)
            reply.reader = AnswerReader(response.headers)
            for line in response.iter_lines():
                if text := reply.reader.read(line):
                    yield text


class AsyncWakeful:
    """The same client for asyncio: its methods are awaited, and an answer is read with `async for`."""

    def __init__(self, url: str | None = None, token: str | None = None, *, timeout: float = TIMEOUT) -> None:
        self._target = find_target(url, token)
        self._http = httpx2.AsyncClient(**options(self._target, timeout))

    def __repr__(self) -> str:
        return f"AsyncWakeful({self._target.url!r})"

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        await self._http.aclose()

    async def agents(self) -> list[Agent]:
        return await self._do(calls.agents())

    async def ask(
        self, message: str, *, agent: str | None = None, session: str | None = None, system: str = ""
    ) -> Answer:
        reply = self.stream(message, agent=agent, session=session, system=system)
        async for _ in reply:
            pass
        return reply.answer

    def stream(
        self, message: str, *, agent: str | None = None, session: str | None = None, system: str = ""
    ) -> "AsyncReply":
        return AsyncReply(self._read_answer, calls.question(message, agent, session, system))

    async def book(
        self,
        instructions: str,
        *,
        when: str | datetime | None = None,
        every: timedelta | float | None = None,
        cron: str | None = None,
        timezone: str | None = None,
        agent: str | None = None,
        session: str | None = None,
        comment: str | None = None,
    ) -> Wake:
        timing = Timing(when=when, every=every, cron=cron, timezone=timezone)
        return await self._do(calls.book(instructions, timing, agent=agent, session=session, comment=comment))

    async def wakes(self, *, agent: str | None = None, ended: bool = False) -> list[Wake]:
        return await self._do(calls.wakes(agent, is_live=not ended))

    async def cancel(self, wake_id: str) -> None:
        await self._do(calls.cancel(wake_id))

    async def why(self, wake_id: str) -> list[Decision]:
        return await self._do(calls.why(wake_id))

    async def _do(self, steps: Calls[T]) -> T:
        answer: Any = None
        while True:
            try:
                call = steps.send(answer)
            except StopIteration as done:
                return done.value
            answer = await self._send(call)

    async def _send(self, call: Call) -> Any:
        with explained(self._target):
            return read(await self._http.request(call.method, call.path, json=call.body))

    async def _read_answer(self, reply: "AsyncReply", steps: Calls[Question]) -> AsyncGenerator[str]:
        question = await self._do(steps)
        with explained(self._target):
            async with self._http.stream(
                "POST", question.path, json=question.body, headers=question.headers
            ) as response:
                if not response.is_success:
                    await response.aread()
                    raise refusal(response)
                reply.reader = AnswerReader(response.headers)
                async for line in response.aiter_lines():
                    if text := reply.reader.read(line):
                        yield text


class _Answering:
    """An answer that is being read."""

    def __init__(self) -> None:
        self.reader: AnswerReader | None = None

    @property
    def answer(self) -> Answer:
        """The whole answer, once all of its text was read."""
        if self.reader is None:
            raise WakefulClientError("Nothing of this answer was read yet. Iterate over it first.")
        return self.reader.answer


class Reply(_Answering):
    """An answer as it is written: iterate over its text, then read `answer`."""

    def __init__(self, read_answer: "calls.ReadAnswer[Reply, Generator[str]]", steps: Calls[Question]) -> None:
        super().__init__()
        self._pieces = read_answer(self, steps)

    def __iter__(self) -> Generator[str]:
        return self._pieces


class AsyncReply(_Answering):
    """An answer as it is written: iterate over its text with `async for`, then read `answer`."""

    def __init__(
        self, read_answer: "calls.ReadAnswer[AsyncReply, AsyncGenerator[str]]", steps: Calls[Question]
    ) -> None:
        super().__init__()
        self._pieces = read_answer(self, steps)

    def __aiter__(self) -> AsyncGenerator[str]:
        return self._pieces
