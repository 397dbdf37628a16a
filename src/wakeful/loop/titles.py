"""Requests to an agent's model outside of its runs: names of sessions after the first answer, and side requests."""

import asyncio
import logging

from pydantic_ai.direct import model_request
from pydantic_ai.messages import ModelMessage, ModelRequest, SystemPromptPart, TextPart, UserPromptPart
from pydantic_ai.usage import RequestUsage

from wakeful.core.budget import NOTHING, Budget
from wakeful.core.clock import Clock
from wakeful.core.errors import StoreUnavailable, Unavailable, WakefulError
from wakeful.core.records import Outcome, SideAnswer
from wakeful.core.texts import first_words
from wakeful.core.types import Agent, ClaimedRun
from wakeful.loop.briefing import Briefing, Briefings
from wakeful.loop.context import tokens_in
from wakeful.loop.spending import PriceUnknown, Spending
from wakeful.models.by_name import Models
from wakeful.models.names import DEMO
from wakeful.operations.metrics import Metrics
from wakeful.runs.service import RunService
from wakeful.sessions.service import SessionService

log = logging.getLogger(__name__)

_ASK = "Name this conversation in two to six words, in its own language. Answer with the name alone."
_SHOWN = 2_000  # characters of each side
_PATIENCE = 30.0  # seconds


class Titles:
    """Names sessions that have no title yet."""

    def __init__(
        self,
        briefings: Briefings,
        sessions: SessionService,
        runs: RunService,
        models: Models,
        clock: Clock,
        metrics: Metrics,
    ) -> None:
        self._metrics = metrics
        self._briefings = briefings
        self._sessions = sessions
        self._runs = runs
        self._models = models
        self._clock = clock
        self._tasks: set[asyncio.Task[None]] = set()

    def note_finished(self, run: ClaimedRun, outcome: Outcome) -> None:
        """Start naming the session of a finished run if it needs a title."""
        if outcome.status != "success" or run.is_headless:
            return
        task = asyncio.create_task(self._name(run), name=f"title-{run.id}")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def stop(self) -> None:
        """Cancel naming."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _name(self, run: ClaimedRun) -> None:
        try:
            briefing = await self._briefings.read(run)
            if not briefing.session.title:
                await self._sessions.give_title(run.session_id, await self._find(briefing))
        except StoreUnavailable as error:
            log.warning("session left without a title", extra={"session_id": run.session_id, "problem": error.message})
        except Exception:
            log.warning("session left without a title", exc_info=True, extra={"session_id": run.session_id})

    async def _find(self, briefing: Briefing) -> str:
        asked = (each.content for each in briefing.messages if each.role == "user" and each.source is None)
        question = next(asked, "")  # of the person: not what a wake had booked
        name = briefing.agent.model or self._models.default
        if name == DEMO or briefing.usage is None:
            return first_words(question)
        spending = Spending(briefing.agent.budgets, briefing.spent_today, briefing.usage)
        if spending.budget.is_spent:  # naming is a model call of the run, and counts like the others
            return first_words(question)
        answer = next((message.content for message in reversed(briefing.messages) if message.role == "assistant"), "")
        asked = f"User: {question[:_SHOWN]}\n\nAssistant: {answer[:_SHOWN]}"
        began = self._clock.monotonic()
        try:
            async with asyncio.timeout(_PATIENCE):
                response = await model_request(
                    await self._models.load(name),
                    [ModelRequest(parts=[SystemPromptPart(content=_ASK), UserPromptPart(content=asked)])],
                )
        except Exception as error:
            if not isinstance(error, TimeoutError) and self._models.translate(error, name) is None:
                raise
            return first_words(question)  # better than no title
        said = "".join(part.content for part in response.parts if isinstance(part, TextPart))
        used = response.usage
        if not used.has_values():
            used = RequestUsage(input_tokens=tokens_in(_ASK + asked), output_tokens=tokens_in(said))
        cost, seconds = self._models.price(name, used, at=self._clock.now()), self._clock.monotonic() - began
        self._metrics.note_model_call(name, seconds, used.input_tokens, used.output_tokens, cost)
        spending.count_model_call(used, cost)
        await self._runs.save_usage(spending.usage)
        return first_words(said.strip().strip('"*#.')) or first_words(question)


# Ask an agent's model outside of any run: without tools, session or wakes.


_SIDE_PATIENCE = 120.0  # seconds


class NoSideAnswer(Unavailable):
    code = "model_silent"

    def __init__(self, model: str) -> None:
        super().__init__(f"The model {model!r} has not answered within {_SIDE_PATIENCE:.0f} s. Try again later.")


class SideRequests:
    def __init__(self, models: Models, clock: Clock) -> None:
        self._models = models
        self._clock = clock

    async def ask(self, agent: Agent, system: str, text: str) -> SideAnswer:
        """Return what the model of an agent answers to one message. Its owner's prompt is not part of it."""
        name = agent.model or self._models.default
        self._check_price(agent, name)
        parts = [*([SystemPromptPart(content=system)] if system else []), UserPromptPart(content=text)]
        began = self._clock.monotonic()
        said, used = await self._request(name, [ModelRequest(parts=parts)])
        if not used.has_values():
            used = RequestUsage(input_tokens=tokens_in(system + text), output_tokens=tokens_in(said))
        return SideAnswer(
            text=said,
            model=name,
            input_tokens=used.input_tokens,
            output_tokens=used.output_tokens,
            cost_micros=self._models.price(name, used, at=self._clock.now()),
            seconds=self._clock.monotonic() - began,
        )

    def _check_price(self, agent: Agent, name: str) -> None:
        price = self._models.price(name, RequestUsage(input_tokens=1), at=self._clock.now())
        if price is None and Budget(agent.budgets, NOTHING).counts_money:
            raise PriceUnknown(name)

    async def _request(self, name: str, messages: list[ModelMessage]) -> tuple[str, RequestUsage]:
        try:
            await self._models.prepare(name)
            async with asyncio.timeout(_SIDE_PATIENCE):
                response = await model_request(await self._models.load(name), messages)
        except TimeoutError:
            raise NoSideAnswer(name) from None
        except WakefulError:
            raise
        except Exception as error:  # providers' errors have many classes; the models know which are theirs
            known = self._models.translate(error, name)
            if known is None:
                raise
            raise known from error
        return "".join(part.content for part in response.parts if isinstance(part, TextPart)), response.usage
