"""Chat completions: find the session that a conversation goes on in, ask its agent, and follow the run."""

import asyncio
import logging
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Literal

from wakeful.agents.service import AgentService
from wakeful.completions import rules as chat_rules
from wakeful.completions.rules import (
    AN_IMAGE,
    MAX_AT_ONCE,
    BudgetUsedUp,
    ClientKey,
    CompletionRequest,
    Keys,
    RunFailure,
    Said,
    SideRequestsOff,
    TooManySideRequests,
)
from wakeful.core import ids
from wakeful.core.budget import Budget
from wakeful.core.clock import Clock
from wakeful.core.errors import Conflict, Invalid, Unavailable, WakefulError
from wakeful.core.identity import Identity
from wakeful.core.records import WAIT_SECONDS, Attached, SideAnswer, StillBusy
from wakeful.core.types import Agent, Message, Rules, Run, RunUsage, Session
from wakeful.operations.metrics import Metrics
from wakeful.runs.rules import current_version
from wakeful.runs.service import NOTHING, RunService, check_brake, name_images
from wakeful.sessions.messages import all_messages
from wakeful.sessions.service import SessionBusy
from wakeful.store.completions import ClientSession
from wakeful.store.runs import NoSuchRun
from wakeful.store.store import Store, Tx
from wakeful.stream.service import Following, Frame

log = logging.getLogger(__name__)
QUIET = timedelta(seconds=10)  # then a stream sends a comment, so that nothing on the way closes it


class OtherAgent(Conflict):
    code = "other_agent"

    def __init__(self, session: Session, model: str) -> None:
        super().__init__(
            f"Session {session.id!r} is one of the agent 'agent:{session.agent_id}', and the request asks {model!r}. "
            "Ask that agent, or leave the header X-Wakeful-Session out."
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A run that answers a request."""

    run: Run
    session_id: str
    after: int  # the number of the last frame before it
    is_found: bool  # its session has a key, or was matched, so the client can come back to it


@dataclass(frozen=True, slots=True, kw_only=True)
class Completion:
    """A whole answer."""

    text: str
    thoughts: str = ""
    finish_reason: Literal["stop", "length"] = "stop"
    input_tokens: int = 0
    output_tokens: int = 0


AskAside = Callable[[Agent, str, str], Awaitable[SideAnswer]]  # the agent, a system prompt and a message


class Completions:
    def __init__(
        self,
        store: Store,
        clock: Clock,
        rules: Rules,
        agents: AgentService,
        runs: RunService,
        following: Following,
        metrics: Metrics,
        ask_aside: AskAside,
        *,
        answers_side_requests: bool = True,
    ) -> None:
        self._store = store
        self._clock = clock
        self._rules = rules
        self._agents = agents
        self._runs = runs
        self._following = following
        self._metrics = metrics
        self._ask_aside = ask_aside
        self._answers_side_requests = answers_side_requests
        self.quiet = QUIET
        self.wait_seconds: float = WAIT_SECONDS
        self._stops: set[asyncio.Task[None]] = set()
        self._asides: Counter[str] = Counter()  # side requests in progress, by token

    def now(self) -> datetime:
        return self._clock.now()

    async def models(self, user_id: str) -> list[tuple[str, Agent]]:
        """Return the user's agents, with the name of each as a model."""
        agents = await self._agents.of_user(user_id)
        return [(chat_rules.model_of(agent, agents), agent) for agent in agents]

    async def model(self, model: str, user_id: str) -> tuple[str, Agent]:
        agents = await self._agents.of_user(user_id)
        agent = chat_rules.find_agent(model, agents)
        return chat_rules.model_of(agent, agents), agent

    async def ask(
        self,
        caller: Identity,
        request: CompletionRequest,
        key: ClientKey | None = None,
        attached: Attached = NOTHING,
    ) -> Asked:
        """Add the last message to the session of its conversation, and queue the run that answers it.

        A conversation that is not known gets a new session, with its history. If the session is busy, its run may end
        within 20 seconds.
        """
        agent = chat_rules.find_agent(request.model, await self._agents.of_user(caller.user.id))
        keys = await asyncio.to_thread(chat_rules.keys_of, request, key, caller.token_id, agent.id)
        until = self._clock.monotonic() + self.wait_seconds
        while True:
            try:
                return await self._ask_now(caller, agent, request, key, keys, attached)
            except SessionBusy as busy:
                if not await self._following.wait_for_end(busy.run, until):
                    raise StillBusy(busy.run) from None

    def follow(self, asked: Asked) -> AsyncGenerator[Frame | None]:
        """Yield the frames of the run that answers; None after each time without one."""
        return self._following.follow(asked.run, asked.after, self.quiet)

    async def finish(self, asked: Asked) -> Completion:
        """Return the whole answer of a run that has ended."""

        async def work(tx: Tx) -> Completion:
            run = await tx.runs.read(asked.run.id)
            steps = await tx.sessions.steps_of(run.id)
            usage = await tx.usage.of_run(run.id)
            return Completion(
                text=chat_rules.shown_answer(steps),
                thoughts=chat_rules.shown_thoughts(steps),
                finish_reason=chat_rules.finish_reason(run.note),
                input_tokens=0 if usage is None else usage.input_tokens,
                output_tokens=0 if usage is None else usage.output_tokens,
            )

        return await self._store.read(work)

    def leave(self, asked: Asked) -> None:
        """Stop the run of a client that hung up, unless it can come back: then the answer is there for it."""
        if asked.is_found:
            return
        task = asyncio.create_task(self._stop(asked.run), name=f"stop-{asked.run.id}")
        self._stops.add(task)
        task.add_done_callback(self._stops.discard)

    async def answer_aside(self, caller: Identity, request: CompletionRequest) -> Completion:
        """Have an agent's model answer a chat page's request about a conversation: no session, tools or wakes.

        It counts in the agent's budget of the day, and against the brake of its token.
        """
        if not self._answers_side_requests:
            raise SideRequestsOff
        if self._asides[caller.token_id] >= MAX_AT_ONCE:
            raise TooManySideRequests
        self._asides[caller.token_id] += 1
        try:
            return await self._answer_aside(caller, request)
        finally:
            self._asides -= Counter((caller.token_id,))  # which drops those at 0

    async def _answer_aside(self, caller: Identity, request: CompletionRequest) -> Completion:
        agent = chat_rules.find_agent(request.model, await self._agents.of_user(caller.user.id))
        spent = (await self._agents.usage(agent.id, caller.user.id)).spent
        if Budget(agent.budgets, today=spent).is_spent:
            raise BudgetUsedUp(agent.name)
        now = self._clock.now()
        usage = RunUsage(
            run_id=f"side/{caller.token_id}/{ids.new_id(now)}",  # of no run; token_uses.sql counts it
            agent_id=agent.id,
            user_id=caller.user.id,
            at=now,
            model=agent.model or "",
            cost_micros=0,
        )

        async def note(tx: Tx) -> None:
            await check_brake(tx, caller.via, now, self._rules, is_side_request=True)
            await tx.usage.save(usage)

        await self._store.write(note)  # before the answer, so that those at the same time count too
        said = await self._ask_aside(agent, request.system, request.last.text)
        self._metrics.note_model_call(said.model, said.seconds, said.input_tokens, said.output_tokens, said.cost_micros)
        await self._runs.save_usage(
            replace(
                usage,
                model=said.model,
                input_tokens=said.input_tokens,
                output_tokens=said.output_tokens,
                cost_micros=said.cost_micros,
                model_calls=1,
            )
        )
        return Completion(text=said.text, input_tokens=said.input_tokens, output_tokens=said.output_tokens)

    async def aclose(self) -> None:
        """Wait for stops in progress."""
        await asyncio.gather(*self._stops, return_exceptions=True)

    async def _ask_now(
        self,
        caller: Identity,
        agent: Agent,
        request: CompletionRequest,
        key: ClientKey | None,
        keys: Keys,
        attached: Attached,
    ) -> Asked:
        now = self._clock.now()
        new, images = _new_session(agent, now), name_images(attached, now)

        async def work(tx: Tx) -> Asked:
            found = await _find(tx, caller, agent, request, key, keys)
            session = new if found is None else found.session
            if found is None:
                await check_brake(tx, caller.via, now, self._rules)  # before it writes anything
                await tx.sessions.add([new])
                await tx.sessions.preload([_preload(each, new, now) for each in request.history])
            after, _ = await tx.sessions.seqs(session.id)
            text, system, replaces = request.last.text, request.system, None if found is None else found.replaces
            run = await self._runs.add(
                tx, session, text, images, attached, now, caller.via, system=system, replaces=replaces
            )
            await tx.client_sessions.save(_client_session(session, run, keys))
            is_found = found is not None or key is not None
            return Asked(run=run, session_id=session.id, after=after, is_found=is_found)

        return await self._runs.write_or_mark_present(work, now)

    async def _stop(self, run: Run) -> None:
        try:
            await self._runs.stop(run.id, run.user_id)
        except Unavailable as error:
            log.warning("run of a client that left goes on", extra={"run_id": run.id, "problem": error.message})


@dataclass(frozen=True, slots=True)
class _Place:
    """The session that a conversation goes on in, and the message there that the last one is a new version of."""

    session: Session
    replaces: str | None = None


async def _find(
    tx: Tx, caller: Identity, agent: Agent, request: CompletionRequest, key: ClientKey | None, keys: Keys
) -> _Place | None:
    """Return where a conversation goes on, if it is known."""
    user_id = caller.user.id
    if key is not None and key.is_session and ids.could_be_id(key.value):
        session = await tx.sessions.find(key.value)
        if session is not None and session.user_id == user_id:
            if session.agent_id != agent.id:
                raise OtherAgent(session, request.model)
            return _Place(session)
    known = None if keys.client is None else await tx.client_sessions.by_key(user_id, keys.client)
    if known is not None and key is not None:
        session = await tx.sessions.get(known.session_id, user_id)
        return _Place(session) if key.is_session else await _find_version(tx, session, known, request)
    if keys.before is not None:
        others = await tx.client_sessions.by_history(user_id, keys.before)
        # One with another key is a chat of its own, of which the client has a copy.
        known = await _match(tx, request, [each for each in others if not keys.client or not each.client_key])
    return None if known is None else _Place(await tx.sessions.get(known.session_id, user_id))


async def _find_version(tx: Tx, session: Session, known: ClientSession, request: CompletionRequest) -> _Place | None:
    """Return where a request goes on in the session of its chat; None if its history is another one."""
    steps = await tx.sessions.steps_of(known.run_id)
    if chat_rules.is_next(request, steps):
        if chat_rules.compare_answer(request.answer_before, steps, is_over=False) != "other":
            return _Place(session)
        is_other = chat_rules.has_other_answer(request, await all_messages(tx, session.id))
        return None if is_other else _Place(session)
    messages = await all_messages(tx, session.id)
    replaced = chat_rules.find_replaced(request, current_version(messages))
    if replaced is None:
        return None
    if not chat_rules.has_other_answer(request, messages, replaced):
        return _Place(session, replaces=replaced.id)
    # Open WebUI asks for "More concise" with a message that it then leaves out: its answer is that to the one before.
    is_last = chat_rules.compare_answer(request.answer_before, steps, is_over=True) == "same"
    return _Place(session) if is_last else None


async def _match(tx: Tx, request: CompletionRequest, known: Sequence[ClientSession]) -> ClientSession | None:
    """Return the session whose answer is in the client's history, or of whose answer a part is there.

    None if several are: the one may be another person's.
    """
    same: list[ClientSession] = []
    parts: list[ClientSession] = []
    for each in known:
        steps, is_over = await tx.sessions.steps_of(each.run_id), await _is_over(tx, each.run_id)
        kind = chat_rules.compare_answer(request.answer_before, steps, is_over=is_over)
        if kind != "other":
            (same if kind == "same" else parts).append(each)
    found = same or parts
    return found[0] if len(found) == 1 else None


async def _is_over(tx: Tx, run_id: str) -> bool:
    try:
        return (await tx.runs.read(run_id)).status not in ("queued", "running")
    except NoSuchRun:  # an old one, which was deleted
        return True


def _client_session(session: Session, run: Run, keys: Keys) -> ClientSession:
    return ClientSession(
        session_id=session.id,
        user_id=session.user_id,
        client_key=keys.client,
        history_key=keys.after,
        run_id=run.id,
        at=run.queued_at,
    )


def _new_session(agent: Agent, now: datetime) -> Session:
    return Session(
        id=ids.new_id(now), agent_id=agent.id, user_id=agent.user_id, title="", created_at=now, updated_at=now
    )


def _preload(said: Said, session: Session, now: datetime) -> Message:
    return Message(
        id=ids.new_id(now),
        session_id=session.id,
        position=0,
        role=said.role,
        content=f"{said.text}\n{AN_IMAGE}" if said.has_image else said.text,
        created_at=now,
        source="preloaded",
        data={"preloaded": {}},
    )


# Errors for programs whose run ended without an answer.


class ContextTooLong(Invalid):
    code = "context_length_exceeded"


class RunEnded(Conflict):
    """A person ended the run, or deleted its session."""

    code = "run_ended"


class RunFailed(Unavailable):
    code = "run_failed"


_KINDS: dict[str, type[WakefulError]] = {
    "context_too_large": ContextTooLong,
    "stopped": RunEnded,
    "session_deleted": RunEnded,
}


def to_error(failure: RunFailure) -> WakefulError:
    """Return the error of a run. The request is not repeated by itself: the run may have done a part of its work."""
    return _KINDS.get(failure.code, RunFailed)(failure.message)
