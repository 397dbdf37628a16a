"""A scripted OpenAI-compatible provider on a real socket, for tests, crash tests and benches.

In a test: `async with OpenAIServer(say("Hello"), refuse(429, "Slow down")) as server:`, one answer per request, in
order; leaving the block fails if the script was not used up or was too short. As a process: `python
tests/support/openai_server.py --port 0` prints its address and answers from the last message, see `improvise`.
"""

import argparse
import asyncio
import json
import sys
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Self

REASONS = {200: "OK", 400: "Bad Request", 401: "Unauthorized", 429: "Too Many Requests", 500: "Internal Server Error"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A request, as the provider received it."""

    method: str
    path: str
    headers: dict[str, str]  # names in lower case
    body: dict[str, Any]
    connection: int  # requests with the same number came over the same connection


class Exchange:
    """One request and the way to answer it."""

    def __init__(self, request: Request, writer: asyncio.StreamWriter) -> None:
        self.request = request
        self._writer = writer
        self.is_kept_alive = True

    async def begin(self, status: int = 200, headers: dict[str, str] | None = None) -> None:
        """Send the headers of a chunked response."""
        lines = {"Content-Type": "text/event-stream", "Transfer-Encoding": "chunked"} | (headers or {})
        head = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
        await self._write(f"HTTP/1.1 {status} {REASONS.get(status, 'Odd')}\r\n{head}\r\n".encode())

    async def send(self, data: bytes) -> None:
        """Send bytes as one HTTP chunk, and one packet where the system lets us."""
        await self._write(b"%x\r\n%s\r\n" % (len(data), data))

    async def end(self) -> None:
        await self._write(b"0\r\n\r\n")

    def drop(self) -> None:
        """Abort the connection."""
        self.is_kept_alive = False
        self._writer.transport.abort()

    async def _write(self, data: bytes) -> None:
        self._writer.write(data)
        await self._writer.drain()


Answer = Callable[[Exchange], Awaitable[None]]
Piece = dict[str, Any] | bytes | float  # a chunk, raw bytes, or seconds of silence


class OpenAIServer:
    """Answers each request with the next line of its script; one function instead of a script answers all of them.

    Requests about models, such as `GET /v1/models`, are not part of the script: `routes` answers them by method and
    path, and the others get a 404.
    """

    def __init__(
        self,
        *script: Answer,
        always: Answer | None = None,
        port: int = 0,
        routes: dict[str, Answer] | None = None,
    ) -> None:
        self._script = list(script)
        self.always = always
        self.routes = dict(routes or {})
        self.lookups: list[Request] = []  # requests about models
        self._port = port
        self._connections = 0
        self._tasks: set[asyncio.Task[None]] = set()
        self.requests: list[Request] = []
        self.unexpected = 0

    @property
    def port(self) -> int:
        return self._server.sockets[0].getsockname()[1]

    @property
    def origin(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def base_url(self) -> str:
        return f"{self.origin}/v1"

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", self._port)
        return self

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._server.close()
        await asyncio.sleep(0.01)  # a connection accepted just now gets its task, which closes it
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if kind is None:
            self.check_script()

    def check_script(self) -> None:
        """Fail if the script was not used up, or was too short."""
        assert not self._script, f"{len(self._script)} answers of the script were never asked for"
        assert not self.unexpected, f"{self.unexpected} requests more than the script has answers"

    async def serve_forever(self) -> None:
        await self._server.serve_forever()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self._connections += 1
        number = self._connections
        try:
            while (request := await _read_request(reader, number)) is not None:
                exchange = Exchange(request, writer)
                route = self.routes.get(f"{request.method} {request.path}")
                if route is not None or request.method == "GET":
                    self.lookups.append(request)
                    await (route or refuse(404, "Not Found"))(exchange)
                else:
                    self.requests.append(request)
                    await self.next_answer()(exchange)
                if not exchange.is_kept_alive:
                    break
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass  # the client hung up, or the test is over
        finally:
            self._tasks.discard(task)
            writer.transport.abort()

    def next_answer(self) -> Answer:
        if self.always is not None:
            return self.always
        if self._script:
            return self._script.pop(0)
        self.unexpected += 1
        return refuse(400, "The script has no answer left.")


async def _read_request(reader: asyncio.StreamReader, connection: int) -> Request | None:
    head = await reader.readuntil(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").strip().split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    method, path, _ = first.split()
    return Request(method=method, path=path, headers=headers, body=json.loads(body or b"{}"), connection=connection)


def chunk(delta: dict[str, Any] | None = None, *, finish: str | None = None, **fields: Any) -> dict[str, Any]:
    """Make a chunk of a chat completion."""
    choice = {"index": 0, "delta": delta or {}, "finish_reason": finish}
    common = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "test"}
    return common | {"choices": [choice]} | fields


def text(*deltas: str) -> list[dict[str, Any]]:
    return [chunk({"content": delta}) for delta in deltas]


def thinking(*deltas: str, field: str = "reasoning_content") -> list[dict[str, Any]]:
    return [chunk({field: delta}) for delta in deltas]


def call(name: str, *arguments: str, index: int | None = 0, id: str | None = "call_1") -> list[dict[str, Any]]:  # noqa: A002  (the protocol's name)
    """Make the chunks of one tool call: its name first, then its arguments piece by piece."""
    place = {} if index is None else {"index": index}
    named = place | ({} if id is None else {"id": id}) | {"type": "function"}
    first = named | {"function": {"name": name, "arguments": ""}}
    rest = [place | {"function": {"arguments": piece}} for piece in arguments]
    return [chunk({"tool_calls": [piece]}) for piece in (first, *rest)]


def usage(prompt: int, completion: int, **more: Any) -> dict[str, Any]:
    """Make the last chunk, which has usage and no choices."""
    spent = {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}
    return chunk(usage=spent | more, choices=[])


def event(value: dict[str, Any]) -> bytes:
    return f"data: {json.dumps(value)}\n\n".encode()


def stream(*pieces: Piece, finish: str | None = "stop", done: bool = True) -> Answer:
    """Answer with a stream; without finish and done it ends half-way."""

    async def answer(exchange: Exchange) -> None:
        await exchange.begin()
        for piece in pieces:
            if isinstance(piece, float):
                await asyncio.sleep(piece)
            else:
                await exchange.send(piece if isinstance(piece, bytes) else event(piece))
        if finish is not None:
            await exchange.send(event(chunk(finish=finish)))
        if done:
            await exchange.send(b"data: [DONE]\n\n")
        await exchange.end()

    return answer


def say(*deltas: str) -> Answer:
    return stream(*text(*deltas), usage(12, len(deltas)))


def calls(*pieces: dict[str, Any]) -> Answer:
    return stream(*pieces, finish="tool_calls")


def raw(body: bytes, *, cut: Iterable[int] = ()) -> Answer:
    """Answer with these bytes, cut at these places."""

    async def answer(exchange: Exchange) -> None:
        await exchange.begin()
        places = sorted({0, *cut, len(body)})
        for begin, end in pairwise(places):
            await exchange.send(body[begin:end])
            await asyncio.sleep(0)
        await exchange.end()

    return answer


def refuse(status: int, body: str | dict[str, Any], headers: dict[str, str] | None = None) -> Answer:
    """Answer with an error; a text is put into the provider's usual JSON, another body is sent as it is."""
    content = {"error": {"message": body, "type": "error"}} if isinstance(body, str) else body
    return reply(status, json.dumps(content).encode(), {"Content-Type": "application/json"} | (headers or {}))


def reply(status: int, body: bytes, headers: dict[str, str]) -> Answer:
    """Answer with a whole body."""

    async def answer(exchange: Exchange) -> None:
        await exchange.begin(status, headers)
        await exchange.send(body)
        await exchange.end()

    return answer


def listing(*models: dict[str, Any] | str) -> Answer:
    """Answer with a list of models; a text stands for a model with that id."""
    data = [{"id": each, "object": "model"} if isinstance(each, str) else each for each in models]
    return reply(200, json.dumps({"object": "list", "data": data}).encode(), {"Content-Type": "application/json"})


def json_of(body: Any, status: int = 200) -> Answer:
    """Answer with JSON."""
    return reply(status, json.dumps(body).encode(), {"Content-Type": "application/json"})


async def hang(exchange: Exchange) -> None:
    """Read the request and never answer."""
    await asyncio.sleep(3600)


async def hang_up(exchange: Exchange) -> None:
    """Read the request and close the connection."""
    exchange.drop()


def break_off(*pieces: Piece) -> Answer:
    """Begin an answer and close the connection in the middle of it."""

    async def answer(exchange: Exchange) -> None:
        await exchange.begin()
        for piece in pieces:
            assert not isinstance(piece, float)
            await exchange.send(piece if isinstance(piece, bytes) else event(piece))
        await asyncio.sleep(0.01)  # an abort discards what is not sent yet
        exchange.drop()

    return answer


async def improvise(exchange: Exchange) -> None:
    """Answer from the last message.

    `call TOOL {"json": 1}` calls a tool, `think WORDS` thinks first, `stream N [SECONDS]` sends N deltas, that far
    apart, `hang`, `fail STATUS` and `half WORDS` do what they say, a tool's result is quoted, anything else is echoed.
    """
    last = exchange.request.body["messages"][-1]
    content = last["content"]
    words = content if isinstance(content, str) else " ".join(part.get("text", "[image]") for part in content)
    words = words.partition("they are not from your user:\n> ")[2] or words  # instructions that an agent booked
    verb, _, rest = words.partition(" ")
    if last["role"] == "tool":
        await stream(*text("The tool said: ", words), usage(10, 2))(exchange)
    elif verb == "call":
        name, _, arguments = rest.partition(" ")
        asked = len(exchange.request.body["messages"])  # a new id for every call of a conversation
        await calls(*call(name, arguments or "{}", id=f"call_{asked}"), usage(10, 5))(exchange)
    elif verb == "think":
        await stream(*thinking("Let me ", "think. "), *text(*rest.split(" ")), usage(10, 5))(exchange)
    elif verb == "stream":
        await _stream_many(exchange, *rest.split())
    elif verb == "half":
        await stream(*text(rest), finish=None, done=False)(exchange)
    elif verb == "fail":
        await refuse(int(rest), "You asked me to fail.")(exchange)
    elif verb == "hang":
        await hang(exchange)
    else:
        await stream(*text("You ", "said: ", words), usage(10, 3))(exchange)


async def _stream_many(exchange: Exchange, count: str, apart: str = "0") -> None:
    delta = event(chunk({"content": "word "}))
    await exchange.begin()
    for _ in range(int(count)):
        await exchange.send(delta)
        await asyncio.sleep(float(apart))
    await exchange.send(event(chunk(finish="stop")) + event(usage(10, int(count))) + b"data: [DONE]\n\n")
    await exchange.end()


async def main() -> None:
    parser = argparse.ArgumentParser(description="A provider that improvises.")
    parser.add_argument("--port", type=int, default=0)
    async with OpenAIServer(always=improvise, port=parser.parse_args().port) as server:
        sys.stdout.write(f"{server.base_url}\n")
        sys.stdout.flush()
        await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main())


def varied(length: int) -> str:
    """Return a long text that does not repeat itself: a model that does is cut off."""
    return " ".join(map(str, range(length // 2)))[:length]
