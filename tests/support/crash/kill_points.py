"""Ways to kill a server at one exact moment: prepare it with one of these, and it kills itself there."""

import os
import random
import signal
import threading
from collections.abc import Callable
from contextvars import ContextVar
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from wakeful.core.types import Message, Run
from wakeful.outgoing import outbox
from wakeful.outgoing.pings import PingKind
from wakeful.outgoing.sender import Sender
from wakeful.runs.claims import Claims
from wakeful.sessions import search as sessions_search
from wakeful.sessions.search import SearchIndex
from wakeful.store.sessions import SessionRows
from wakeful.store.store import Store, Tx
from wakeful.webhooks.service import WebhookKind

CALLS = "calls"


def die_with_the_answer_saved() -> None:
    """Die right after the commit that saved the final answer of a run."""
    _after_commit_of(_is_final, _die)


def die_with_the_answer_saved_and_a_stop_requested() -> None:
    """As that, but someone asked the run to stop in between."""

    async def stop_and_die(store: Store, message: Message) -> None:
        await store.write(lambda tx: tx.runs.request_stop(message.run_id or "", datetime.now(UTC)))
        await _die(store, message)

    _after_commit_of(_is_final, stop_and_die)


def die_with_a_subagents_answer_saved() -> None:
    """Die right after the commit that saved the final answer of a subagent."""

    def is_its_answer(message: Message) -> bool:
        data = message.data or {}
        return message.role == "subagent" and data.get("role") == "assistant" and not data.get("tool_calls")

    _after_commit_of(is_its_answer, _die)


def die_with_a_promise_saved() -> None:
    """Die after the commit that saved an answer with a promise, before the server's reminder is saved."""
    _after_commit_of(lambda message: "promise" in (message.data or {}), _die)


def die_with_the_reminder_saved() -> None:
    """Die after the commit that saved the server's reminder of a promise."""
    _after_commit_of(lambda message: message.role == "notice", _die)


def die_with_a_result_saved() -> None:
    """Die after the commit that saved the first result of a tool."""
    _after_commit_of(lambda message: message.role == "tool", _die)


def die_with_three_texts_indexed() -> None:
    """Index texts of before an upgrade one at a time, and die after the commit that saved the third."""
    sessions_search.MAX_TEXTS = 1
    original, steps = SearchIndex.build_some, iter(range(1, 4))

    async def build_some(self: SearchIndex) -> bool:
        is_unfinished = await original(self)
        if next(steps) == 3:
            os.kill(os.getpid(), signal.SIGKILL)
        return is_unfinished

    SearchIndex.build_some = build_some  # type: ignore[method-assign]


def die_before_it_sends() -> None:
    """Die when an outgoing message is claimed and ready to be sent."""

    async def send(*_: Any) -> Any:
        os.kill(os.getpid(), signal.SIGKILL)

    Sender.send = send  # type: ignore[method-assign]


def die_when_it_has_sent() -> None:
    """Die when an outgoing message was sent, before its result is saved."""
    original = Sender.send

    async def send(self: Sender, groups: Any, seconds: float) -> Any:
        await original(self, groups, seconds)
        os.kill(os.getpid(), signal.SIGKILL)

    Sender.send = send  # type: ignore[method-assign]


def reclaim_at_once() -> None:
    """Claim what a dead process was about to send after ten seconds, not after a minute and a half."""
    outbox.ABANDONED, outbox.LOOK_EVERY = timedelta(0), timedelta(seconds=1)  # type: ignore[attr-defined]
    WebhookKind.seconds = PingKind.seconds = 10.0


def die_once_claimed() -> None:
    """Die as soon as a run is claimed."""
    _after_claim(lambda: os.kill(os.getpid(), signal.SIGKILL))


def die_soon_after_a_claim() -> None:
    """Die some milliseconds after a run is claimed, before its model is asked or in the middle of that; after some
    seconds in any case."""
    chance = random.Random()

    def die_in(seconds: float) -> None:
        threading.Timer(seconds, os.kill, (os.getpid(), signal.SIGKILL)).start()

    die_in(5)
    _after_claim(lambda: die_in(chance.uniform(0, 0.06)))
    record_calls()


def record_calls() -> None:
    """Write the id of a run into the file CALLS in the data directory before each first call of a start."""
    original = Claims.record_call
    path = Path(os.environ["WAKEFUL_DATA_DIR"], CALLS)

    async def record_call(self: Claims, run: Run) -> None:
        with path.open("a") as file:  # noqa: ASYNC230  (it is to be there at once)
            file.write(f"{run.id}\n")
        await original(self, run)

    Claims.record_call = record_call  # type: ignore[method-assign]


def _after_claim(act: Callable[[], object]) -> None:
    original = Claims.claim

    async def claim(self: Claims, headless: int) -> Any:
        claimed = await original(self, headless)
        if claimed:
            act()
        return claimed

    Claims.claim = claim  # type: ignore[method-assign]


async def _die(_store: Store, _message: Message) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _is_final(message: Message) -> bool:
    data = message.data or {}
    is_answer = "note" in data or ("response" in data and not data.get("tool_calls") and "promise" not in data)
    return message.role == "assistant" and is_answer


def _after_commit_of(is_it: Callable[[Message], bool], act: Callable[[Store, Message], Any]) -> None:
    append, write = SessionRows.append, Store.write
    seen: ContextVar[list[Message]] = ContextVar("seen")  # in the transaction that runs: others end meanwhile

    async def append_and_note(self: SessionRows, message: Message) -> Message:
        if is_it(message):
            seen.get().append(message)
        return await append(self, message)

    async def write_and_act(self: Store, work: Any, **how: bool) -> Any:
        saved: list[Message] = []

        async def work_and_look(tx: Tx) -> Any:
            saved.clear()  # it may be run again
            outer = seen.set(saved)
            try:
                return await work(tx)
            finally:
                seen.reset(outer)

        result = await write(self, work_and_look, **how)
        if saved:
            await act(self, saved[-1])
        return result

    SessionRows.append = append_and_note  # type: ignore[method-assign]
    Store.write = write_and_act  # type: ignore[method-assign]
