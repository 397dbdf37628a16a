"""The demo model: offline, deterministic, and openly not an LLM.

It knows the sentences of a table and calls the real tools for them, so that a newcomer sees thinking, tool calls and a
wake that fires, without a key. A sentence with a time in it books a recall whose brief is the rest of the sentence.
"""

import asyncio
import re
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import aclosing, asynccontextmanager
from datetime import UTC, datetime
from typing import Any

from pydantic_ai import RunContext
from pydantic_ai.messages import (
    ModelMessage,
    ModelResponse,
    SystemPromptPart,
    TextContent,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models import ModelRequestParameters, StreamedResponse
from pydantic_ai.settings import ModelSettings

from wakeful.clock import Clock
from wakeful.domain.errors import Invalid
from wakeful.domain.hooks.payload import FRAME
from wakeful.domain.quoting import OWN_BRIEF
from wakeful.domain.wakes.when import WEEKDAYS, parse_when
from wakeful.runtime.models.demo.sentences import CHART, MEMORIES, MEMORIES_TABLE, SENTENCES, capital, reply_to
from wakeful.runtime.models.local_stream import LocalCall, Piece, Playback, Say, Spend, Think
from wakeful.runtime.models.streaming import StreamingModel

DELAY = 0.01  # seconds between deltas, so that a person sees a stream
MAX_SENTENCE = 20_000  # characters
MAX_WORDS_OF_A_TIME = 12
CHARACTERS_PER_TOKEN = 4
SOME_DAY = datetime(2000, 1, 1, tzinfo=UTC)  # at midnight every time of that day is still ahead
INTRODUCTION = "This is the demo model, not an LLM: it knows a few fixed sentences and calls real tools for them."
ADVICE = (
    "For a real model, the server's owner chooses *Connect a model* on the start page, or runs `wakeful model add`"
    " on its machine. No restart is needed."
)
TIMED_EXAMPLES = (
    "in 10 seconds check notes.txt",
    "tomorrow at 9 read report.md",
    "every 10 minutes check notes.txt",
    "every day at 9 read report.md",
    "now: read notes.txt",
    "in 10 seconds come back, check notes.txt and book your next run in 1 hour",
)
HELP = re.compile(r"help|\?|(?:hi|hello|hey)\b.*|what can you do|who are you", re.IGNORECASE)
POLITENESS = re.compile(
    r"(?:(?:please|can you|could you|would you|(?:remind|wake) (?:me|yourself)|come back|to|and|then)\b|[,:])\s*",
    re.IGNORECASE,
)
NUMBERS = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"]
SPELLED = re.compile(rf"\b({'|'.join(NUMBERS)})(?= (?:second|minute|hour|day|week))", re.IGNORECASE)
TIMES_AT_THE_END = ("in ", "at ", "on ", "next ", "today", "tonight", "tomorrow", *WEEKDAYS)
PLANNING = re.compile(r"\[Planning (?P<phase>[123]):")  # the start of a question of a run's planner
SUMMARY = "[Summary]"  # the start of a request to compress a conversation
RIGHT_AWAY = re.compile(
    r"(?:now\s*[:,]|continue right away(?: (?:and|with|by))?[:,]?)\s*(?P<rest>.+)", re.IGNORECASE | re.DOTALL
)
# Work, and the next run at its end: the next run's brief is the same sentence, so it books itself again.
CHAIN = re.compile(
    r"(?P<work>.+?)[.,;]?\s+(?:and\s+)?(?:then\s+)?book (?:your|the) next run(?:,? (?P<when>in [\w ]{1,40}?))?"
    r"(?: with schedule_next_run)?",
    re.IGNORECASE | re.DOTALL,
)
BY_CLOCK = (
    r"every (?P<day>day|weekday|monday|tuesday|wednesday|thursday|friday|saturday|sunday)"
    r" at (?P<clock>noon|\d\d?(?::\d\d)?(?: ?[ap]m)?)"
)
BY_INTERVAL = r"every (?:(?P<count>\d{1,4}) )?(?P<unit>second|minute|hour|day|week)s?"
RHYTHMS = [
    re.compile(form, re.IGNORECASE | re.DOTALL)
    for rhythm in (BY_CLOCK, BY_INTERVAL)
    for form in (rf"{rhythm},? (?P<rest>.+)", rf"(?P<rest>.+?),? {rhythm}")
]
CRON_DAYS = {"day": "*", "weekday": "1-5"}


class DemoModel(StreamingModel):
    """Answer the sentences of the table, word by word."""

    def __init__(self, clock: Clock, *, delay: float = DELAY) -> None:
        super().__init__()
        self._clock = clock
        self._delay = delay

    @property
    def model_name(self) -> str:
        return "demo"

    @property
    def system(self) -> str:
        return "demo"

    @asynccontextmanager
    async def request_stream(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,  # noqa: ARG002  (the library's signature)
        model_request_parameters: ModelRequestParameters,
        run_context: RunContext[Any] | None = None,  # noqa: ARG002  (the library's signature)
    ) -> AsyncGenerator[StreamedResponse]:
        shown = frozenset(tool.name for tool in model_request_parameters.function_tools)
        size = sum(len(str(getattr(part, "content", ""))) for message in messages for part in message.parts)
        async with aclosing(
            self._stream(_answer(messages, shown, self._clock.now()), size // CHARACTERS_PER_TOKEN)
        ) as stream:
            yield Playback(model_request_parameters, self, self._clock.now(), stream)

    async def _stream(self, pieces: Sequence[Piece], tokens: int) -> AsyncGenerator[Piece]:
        yield Spend(tokens, 0)
        for piece in pieces:
            for delta in _words(piece):
                yield delta
                yield Spend(0, 1)
                await asyncio.sleep(self._delay)


def _words(piece: Piece) -> Sequence[Piece]:
    if not isinstance(piece, Say | Think):
        return [piece]
    return [type(piece)(word) for word in re.findall(r"\S+\s*|\s+", piece.text)]


def _answer(messages: Sequence[ModelMessage], shown: frozenset[str], now: datetime) -> list[Piece]:
    """Answer the last message, given the names of the tools."""
    results, calls = _last_results(messages)
    if results:
        replies = [reply_to(result, calls.get(result.tool_call_id, {}), now) for result in results]
        return [Say("\n\n".join(reply for reply in replies if reply))]
    parts = [part for message in messages for part in message.parts]
    texts = [_text(part) for part in parts if isinstance(part, UserPromptPart)]
    said = [text for text in texts if not text.startswith(FRAME)] or ["help"]  # data of a hook is not an order
    prompt = "\n".join(part.content for part in parts if isinstance(part, SystemPromptPart))
    if said[-1].startswith(SUMMARY):
        return [Say(f"The demo model cannot summarize. The conversation began with: {said[-1][len(SUMMARY) :][:600]}")]
    if (planning := PLANNING.match(said[-1])) is None:
        return _obey(_tidy(said[-1]), shown, prompt)
    task = next((text for text in reversed(said) if not PLANNING.match(text)), "")
    return _plan(int(planning["phase"]), _obey(_tidy(task), shown, prompt))


def _last_results(messages: Sequence[ModelMessage]) -> tuple[list[ToolReturnPart], dict[str, dict[str, Any]]]:
    """Return the results since the last reply of the model, and the arguments of its calls."""
    results: list[ToolReturnPart] = []
    for message in reversed(messages):
        if isinstance(message, ModelResponse):
            return results, {call.tool_call_id: call.args_as_dict() for call in message.tool_calls}
        if any(isinstance(part, UserPromptPart) for part in message.parts):
            break
        results[:0] = [part for part in message.parts if isinstance(part, ToolReturnPart)]
    return results, {}


def _obey(text: str, shown: frozenset[str], prompt: str) -> list[Piece]:
    """Return the calls that a sentence means, or a text if there is no such sentence or tool."""
    if HELP.fullmatch(text.rstrip("!.?") or "?"):
        return [Think("This is the demo model. I say what I can do."), Say(f"{INTRODUCTION} {_can_do(shown)}")]
    calls = _read(text) if len(text) <= MAX_SENTENCE else []
    if not calls:
        unknown = Think("This is the demo model. I do not know that sentence.")
        return [unknown, Say(f"I do not understand that. {_can_do(shown)}")]
    tool = calls[0].tool
    if tool not in shown:
        lack = f"For that I need the tool {tool}, which this agent does not have. Its settings choose its tools."
        return [Think(f"This is the demo model. That sentence needs the tool {tool}."), Say(lack)]
    thought = Think(f"This is the demo model. I know this sentence: it means {tool}.")
    return [thought, *(each for call in calls for each in _complete(call, prompt) if each.tool in shown)]


def _complete(call: LocalCall, prompt: str) -> list[LocalCall]:
    """Add the call that belongs to another: the table for the first memory, or the drawing of a chart."""
    match call.tool, call.arguments:
        case "db_insert", {"table": table} if table == MEMORIES and f"> table {MEMORIES} (" not in prompt:
            return [LocalCall("db_create_table", MEMORIES_TABLE), call]
        case "db_define_view", {"name": str(name)} if name.endswith(CHART):
            return [call, LocalCall("db_run_view", {"name": name})]
        case _:
            return [call]


def _plan(phase: int, pieces: Sequence[Piece]) -> list[Piece]:
    """Return the answer to a question of the planner, given the pieces that answer the task itself."""
    tool = next((piece.tool for piece in pieces if isinstance(piece, LocalCall)), None)
    if phase < 3:
        known = "I do not know that sentence" if tool is None else f"I know this sentence: it means {tool}"
        return [Think("This is the demo model. I look for a sentence that I know."), Say(f"{known}.")]
    return [Say("1. Say what I can do" if tool is None else f"1. Call {tool}\n2. Say what it answered")]


def _can_do(shown: frozenset[str]) -> str:
    examples = [sentence.example for sentence in SENTENCES if sentence.tool in shown]
    examples += TIMED_EXAMPLES if "schedule_recall" in shown else ()
    if not examples:
        return f"This agent has no tools that I know. {ADVICE}"
    return "\n- ".join(["I know sentences like these:\n", *examples]) + f"\n\n{ADVICE}"


def _read(text: str) -> list[LocalCall]:
    """Find the calls that a sentence means. At the end of a chain, the next run is booked with the same brief."""
    chain = CHAIN.fullmatch(text)
    if chain is None:
        # The time at the end of something to remember is not one to wake at.
        scheduled = None if text.lower().startswith("remember that ") else _schedule(text)
        call = scheduled or _understand(text)
        return [] if call is None else [call]
    work, when = _tidy(chain["work"]), chain["when"] or "in 1 hour"
    then = f"Then book your next run {when} with schedule_next_run."
    if (booked := _schedule(work, then)) is not None:
        return [booked]
    call, again = _understand(work), _next_run(when, work, then)
    return [] if call is None or again is None else [call, again]


def _understand(text: str) -> LocalCall | None:
    call = next((call for sentence in SENTENCES if (call := sentence.read(text)) is not None), None)
    if call is not None and call.tool == "schedule_next_run" and isinstance(call.arguments, dict):
        return _next_run(call.arguments["when"], _tidy(call.arguments["rest"]))
    return call


def _next_run(when: str, work: str, then: str = "") -> LocalCall | None:
    seconds, brief = _seconds(when), _brief(work, then)
    booking = {"in_seconds": seconds, "instructions": brief}
    return None if seconds is None or brief is None else LocalCall("schedule_next_run", booking)


def _brief(text: str, then: str = "") -> str | None:
    """Return a sentence as a brief that names its tool, or None if it would not be understood later."""
    call = _understand(text)
    if call is None:
        return None
    named = text if f" with {call.tool}" in text else f"{text} with {call.tool}"
    return f"{capital(named)}. {then}".rstrip()


def _schedule(text: str, then: str = "") -> LocalCall | None:
    """Return the booking that a sentence with a time means; the time is before or after the work."""
    for timing, rest in _timings(text):
        work = _tidy(rest)
        if (brief := _brief(work, then)) is not None:
            texts = {"internal_comment": f"Demo: {work}"[:200], "additional_context_message": brief}
            return LocalCall("schedule_recall", timing | texts)
    return None


def _timings(text: str) -> Iterator[tuple[dict[str, Any], str]]:
    """Divide a text into a time, as arguments of the tool, and the rest, in every possible way."""
    if match := RIGHT_AWAY.fullmatch(text):
        yield {"call_type": "immediate"}, match["rest"]
    for match in filter(None, (form.fullmatch(text) for form in RHYTHMS)):
        if (rhythm := _rhythm(match.groupdict())) is not None:
            yield {"call_type": "recurring", **rhythm}, match["rest"]
    words = text.split(" ")
    near_an_end = (count for count in range(1, len(words)) if min(count, len(words) - count) <= MAX_WORDS_OF_A_TIME)
    cuts = [(" ".join(words[:count]), " ".join(words[count:])) for count in near_an_end]
    last = [(after, before) for before, after in cuts if after.lower().startswith(TIMES_AT_THE_END)]
    for when, rest in (*reversed(cuts), *last):  # the longest time first
        if _seconds(when.rstrip(",:")) is not None:
            yield {"call_type": "once", "when": when.rstrip(",:")}, rest


def _rhythm(said: dict[str, Any]) -> dict[str, Any] | None:
    """Return the tool's arguments for a rhythm: a cron rule, or an interval."""
    if "clock" in said:
        clock, day = _seconds(f"today at {said['clock'].lower()}"), said["day"].lower()
        days = CRON_DAYS.get(day, day[:3])
        return None if clock is None else {"cron": f"{clock // 60 % 60} {clock // 3600} * * {days}"}
    count = said["count"] or "1"
    when = f"in {count} {said['unit'].lower()}{'' if count == '1' else 's'}"
    seconds = _seconds(when)
    return None if seconds is None else {"when": when, "interval_seconds": seconds}


def _seconds(when: str) -> int | None:
    """Return the seconds from midnight to a time, or None if the text is not a time."""
    try:
        return int((parse_when(when, SOME_DAY, UTC).at - SOME_DAY).total_seconds())
    except Invalid:
        return None


def _tidy(text: str) -> str:
    """Remove politeness, line breaks and the full stop, and write numbers as digits."""
    text = SPELLED.sub(lambda said: str(NUMBERS.index(said[1].lower())), " ".join(text.split()))
    while match := POLITENESS.match(text):
        text = text[match.end() :]
    return re.sub(r"(?:,? please)?[.!?]*$", "", text, flags=re.IGNORECASE)


def _text(part: UserPromptPart) -> str:
    if isinstance(part.content, str):
        brief = part.content.removeprefix(OWN_BRIEF)
        return brief if brief == part.content else re.sub("^> ", "", brief, flags=re.MULTILINE)
    texts = [item.content if isinstance(item, TextContent) else item for item in part.content]
    return " ".join(text for text in texts if isinstance(text, str))
