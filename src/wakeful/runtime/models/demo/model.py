"""The demo model: offline, deterministic, and openly not an LLM.

It knows a few plain sentences and calls the real tools for them, so that a newcomer sees thinking, tool calls and a
wake that fires, without a key. A sentence is a row of `SENTENCES`; its own instructions are read like a person's.
"""

import asyncio
import json
import re
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from datetime import UTC, datetime
from typing import Any

from pydantic_ai import RunContext
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    SystemPromptPart,
    TextContent,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models import ModelRequestParameters, StreamedResponse
from pydantic_ai.settings import ModelSettings

from wakeful.clock import Clock
from wakeful.domain.errors import Invalid
from wakeful.domain.wakes.when import WEEKDAYS, parse_when
from wakeful.runtime.models.demo.database import DATABASE_SENTENCES
from wakeful.runtime.models.demo.grammar import make_sentence
from wakeful.runtime.models.local_stream import LocalCall, Piece, Playback, Say, Spend, Think
from wakeful.runtime.models.openai_chat.streaming import StreamingModel

DELAY = 0.01  # seconds between deltas, so that a person sees a stream
LONGEST_EXCERPT = 600
LONGEST_SENTENCE = 20_000
MOST_WORDS_OF_A_TIME = 12
CHARACTERS_PER_TOKEN = 4
SOME_DAY = datetime(2000, 1, 1, tzinfo=UTC)  # at midnight every time of that day is still ahead
INTRODUCTION = "This is the demo model, not an LLM: it knows a few fixed sentences and calls real tools for them."
ADVICE = (
    "For a real model set WAKEFUL_MODEL, for example anthropic:NAME with WAKEFUL_MODEL_API_KEY, or openai-chat:NAME"
    " with WAKEFUL_MODEL_BASE_URL for any OpenAI-compatible endpoint."
)
HELP = re.compile(r"help|\?|(?:hi|hello|hey)\b.*|what can you do|who are you", re.IGNORECASE)
POLITENESS = re.compile(
    r"(?:(?:please|can you|could you|would you|(?:remind|wake) (?:me|yourself)|come back|to|and|then)\b|[,:])\s*",
    re.IGNORECASE,
)
NUMBERS = {"one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9, "ten": 10}
SPELLED = re.compile(rf"\b({'|'.join(NUMBERS)})(?= (?:second|minute|hour|day|week))", re.IGNORECASE)
TIMES_AT_THE_END = ("in ", "at ", "on ", "next ", "today", "tonight", "tomorrow", *WEEKDAYS)


def _managing(action: str) -> Callable[[re.Match[str]], dict[str, Any]]:
    return lambda _said: {"action": action}


def _next_run(said: re.Match[str]) -> dict[str, Any] | None:
    seconds, brief = _seconds(said["when"]), _brief(_tidy(said["rest"]))
    return None if seconds is None or brief is None else {"in_seconds": seconds, "instructions": brief}


def _notice(said: re.Match[str]) -> dict[str, Any]:
    text = said["text"][:1].upper() + said["text"][1:]
    return {"title": text[:100], "body": text}


MEMORIES = "memories"  # the table in which it keeps what it is told to remember
MEMORIES_TABLE = {
    "name": MEMORIES,
    "purpose": "What my user told me to remember.",
    "columns": [{"name": "note", "type": "text", "required": True}],
}
CHART = "_by_day"  # how the views it pins are called


def _chart_of(said: re.Match[str]) -> dict[str, Any]:
    table = said["table"].lower()
    return {
        "name": f"{table}{CHART}",
        "sql": f'SELECT date(_created_at) AS day, count(*) AS entries FROM "{table}" GROUP BY day ORDER BY day',
        "description": f"How many {table} were added each day.",
        "render": "bar",
        "pinned": True,
    }


SENTENCES = (
    make_sentence(
        "ask Wakeful to list files",
        r"ask (?P<agent>\S+) to (?P<task>.+?)",
        "spawn_agent",
        "Ask {agent} to {task} with spawn_agent.",
        lambda said: {"agent": said["agent"], "task": said["task"]},
    ),
    make_sentence(
        "remember that the plumber comes on Friday",
        r"(?:remember|note|keep in mind)(?: that)? (?P<note>.+?)",
        "db_insert",
        "Remember that {note} with db_insert.",
        lambda said: {"table": MEMORIES, "rows": [{"note": said["note"]}]},
    ),
    make_sentence(
        "what do you remember",
        r"what do you remember|(?:list|show)(?: me)? (?:what you remember|your memories)",
        "db_query",
        "List what you remember with db_query.",
        lambda _said: {"sql": f"SELECT note, _created_at FROM {MEMORIES} ORDER BY id DESC LIMIT 20"},
    ),
    make_sentence(
        "draw a chart of memories",
        r"(?:draw|make|show)(?: me)? a chart of (?:the |my |your )?(?P<table>[a-z]\w{0,50})",
        "db_define_view",
        "Draw a chart of {table} with db_define_view.",
        _chart_of,
    ),
    *DATABASE_SENTENCES,
    make_sentence(
        "in 10 seconds start a new session to read notes.txt",
        r"in (?P<seconds>\d{1,5}) seconds?,? (?:start|begin|open) a (?:new|fresh) session (?:to|and) (?P<message>.+?)",
        "scheduler",
        "In {seconds} seconds start a new session to {message} with scheduler.",
        lambda said: {
            "op": "create",
            "kind": "session",
            "message": said["message"],
            "delay_ms": int(said["seconds"]) * 1_000,
            "session_config": {},
        },
    ),
    make_sentence(
        "list recalls",
        r"(?:list|show)(?: me)?(?: all)?(?: the| my| your)? (?:recalls|alarms)",
        "manage_recall",
        "List the recalls with manage_recall.",
        _managing("list"),
    ),
    make_sentence(
        "skip the next recall",
        r"skip(?: the| your| my)?(?: next)? (?:recall|alarm|time|one)",
        "manage_recall",
        "Skip the next recall with manage_recall.",
        _managing("skip"),
    ),
    make_sentence(
        "cancel the recall",
        r"(?:cancel|stop|end)(?: the| your| my)?(?: next)? (?:recall|alarm)",
        "manage_recall",
        "Cancel the recall with manage_recall.",
        _managing("cancel"),
    ),
    make_sentence(
        "book your next run in 10 minutes to read notes.txt",
        r"book your next run (?P<when>in [\w ]{1,40}?) (?:to|and) (?P<rest>.+?)",
        "schedule_next_run",
        "Book your next run {when} to {rest} with schedule_next_run.",
        _next_run,
    ),
    make_sentence(
        "cancel your next run",
        r"(?:cancel|stop|clear) (?:the|your) next run",
        "cancel_next_run",
        "Clear the next run with cancel_next_run.",
    ),
    make_sentence(
        "notify me that the milk is gone",
        r"(?:notify|use notify to tell) (?:me|the user)(?: that|:)? [\"“]?(?P<text>.+?)[\"”]?",
        "notify",
        'Notify the user: "{text}" with notify.',
        _notice,
    ),
    make_sentence(
        "write Buy milk to notes.txt",
        r"(?:write|save|put) [\"“]?(?P<content>.+?)[\"”]? (?:in)?to (?P<path>\S+?)",
        "write_file",
        'Write "{content}" to {path} with write_file.',
    ),
    make_sentence(
        "list files",
        r"(?:list|show)(?: me)?(?: all)?(?: the| my)? files",
        "list_files",
        "List the files with list_files.",
    ),
    make_sentence(
        "search milk",
        r"(?:search|find)(?: the files)?(?: for)? [\"“]?(?P<pattern>.+?)[\"”]?",
        "search_files",
        'Search for "{pattern}" with search_files.',
    ),
    make_sentence(
        "fetch https://example.org",
        r"(?:fetch|get|open|read|check|visit) (?P<url>https?://\S+?)",
        "fetch_url",
        "Fetch {url} with fetch_url and say what it contains.",
    ),
    make_sentence(
        "run ls -l",
        r"(?:run|execute) `?(?P<command>.+?)`?",
        "run_command",
        "Run `{command}` with run_command.",
    ),
    make_sentence(
        "read notes.txt",
        r"(?:read|check|show|open)(?: me)?(?: the)?(?: file)? (?P<path>\S*[./]\S*?)",
        "read_file",
        "Read {path} with read_file and say what it contains.",
    ),
)
PLANNING = re.compile(r"\[Planning (?P<phase>[123]):")  # how a run's planner begins what it asks
SUMMARY = "[Summary]"  # and how one does who makes room
RIGHT_AWAY = re.compile(
    r"(?:now\s*[:,]|continue right away(?: (?:and|with|by))?[:,]?)\s*(?P<rest>.+)", re.IGNORECASE | re.DOTALL
)
RECALLS = (
    "in 10 seconds check notes.txt",
    "tomorrow at 9 read report.md",
    "every 10 minutes check notes.txt",
    "every day at 9 read report.md",
    "now: read notes.txt",
)
CHAINS = ("in 10 seconds come back, check notes.txt and book your next run in 1 hour",)
# Work, and at its end the next run: it books the same again from inside every run.
CHAIN = re.compile(
    r"(?P<work>.+?)[.,;]?\s+(?:and\s+)?(?:then\s+)?book (?:your|the) next run(?:,? (?P<when>in [\w ]{1,40}?))?"
    r"(?: with schedule_next_run)?",
    re.IGNORECASE | re.DOTALL,
)
NEXT_BY_ITSELF = "in 1 hour"
_CLOCK = r"(?P<clock>noon|\d\d?(?::\d\d)?(?: ?[ap]m)?)"
_DAYS = r"(?P<day>day|weekday|monday|tuesday|wednesday|thursday|friday|saturday|sunday)"
_BY_CLOCK = rf"every {_DAYS} at {_CLOCK}"
_BY_INTERVAL = r"every (?:(?P<count>\d{1,4}) )?(?P<unit>second|minute|hour|day|week)s?"
RHYTHMS = tuple(
    re.compile(form, re.IGNORECASE | re.DOTALL)
    for rhythm in (_BY_CLOCK, _BY_INTERVAL)
    for form in (rf"{rhythm},? (?P<rest>.+)", rf"(?P<rest>.+?),? {rhythm}")
)
CRON_DAYS = {"day": "*", "weekday": "1-5"}


class DemoModel(StreamingModel):
    """Understands a handful of sentences."""

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
        pieces = answer(messages, shown)
        async with aclosing(self._stream(pieces, messages)) as stream:
            yield Playback(model_request_parameters, stream, self.model_name, self._clock.now())

    async def _stream(self, pieces: Sequence[Piece], messages: Sequence[ModelMessage]) -> AsyncGenerator[Piece]:
        yield Spend(_tokens(str(getattr(part, "content", "")) for message in messages for part in message.parts), 0)
        for piece in pieces:
            for delta in _words(piece):
                yield delta
                yield Spend(0, 1)
                await asyncio.sleep(self._delay)


def answer(messages: Sequence[ModelMessage], shown: frozenset[str]) -> list[Piece]:
    """Return what the demo model answers to the last message, given the tools it is shown."""
    last = next((message for message in reversed(messages) if isinstance(message, ModelRequest)), None)
    parts = last.parts if last is not None else ()
    said = [_text(part) for part in parts if isinstance(part, UserPromptPart)]
    if said and (planning := PLANNING.match(said[-1])):
        return _plan(int(planning["phase"]), _last_sentence(messages), shown)
    if said and said[-1].startswith(SUMMARY):
        return [Say(f"The demo model sums nothing up. It began so: {said[-1][len(SUMMARY) :][:LONGEST_EXCERPT]}")]
    if said:
        pieces = _obey(_tidy(said[-1]), shown)
        return [_first_of(piece, messages, shown) if isinstance(piece, LocalCall) else piece for piece in pieces]
    results = [part for part in parts if isinstance(part, ToolReturnPart)]
    if not results:
        return _help(shown)
    step = _next_step(results, messages, shown)
    if step is not None:
        return [Think(f"This is the demo model. The next step is {step.tool}."), step]
    told = Say("\n\n".join(_tell(result) for result in results))
    following = _next_of(messages)
    return [told] if following is None or following.tool not in shown else [told, following]


def _next_of(messages: Sequence[ModelMessage]) -> LocalCall | None:
    """Return the booking that is left to do after the work it was told to do first."""
    done: set[str] = set()
    for message in reversed(messages):
        parts = message.parts if isinstance(message, ModelRequest) else ()
        said = [_text(part) for part in parts if isinstance(part, UserPromptPart)]
        if said:
            chain = CHAIN.fullmatch(_tidy(said[-1])[:LONGEST_SENTENCE])
            if chain is None or done & {"schedule_next_run", "schedule_recall"}:
                return None
            brief, seconds = _brief(_tidy(chain["work"])), _seconds(chain["when"] or NEXT_BY_ITSELF)
            if brief is None or seconds is None:
                return None
            return LocalCall(
                "schedule_next_run", {"in_seconds": seconds, "instructions": f"{brief} {_and_then(chain)}"}
            )
        done |= {part.tool_name for part in parts if isinstance(part, ToolReturnPart)}
    return None


def _and_then(chain: re.Match[str]) -> str:
    return f"Then book your next run {chain['when'] or NEXT_BY_ITSELF} with schedule_next_run."


def _read(text: str) -> LocalCall | None:
    """Find what a sentence means; the end of a chain goes into the brief, or waits until the work is done."""
    chain = CHAIN.fullmatch(text)
    if chain is None:
        return _remember(text) or _schedule(text) or _understand(text)
    work = _tidy(chain["work"])
    booked = _schedule(work)
    if booked is None or not isinstance(booked.arguments, dict):
        return _understand(work)
    brief = f"{booked.arguments['additional_context_message']} {_and_then(chain)}"
    return LocalCall(booked.tool, {**booked.arguments, "additional_context_message": brief})


def _first_of(call: LocalCall, messages: Sequence[ModelMessage], shown: frozenset[str]) -> LocalCall:
    """Return what has to be done before a call can be made: the table for memories, which the prompt does not name."""
    if call.tool != "db_insert" or not isinstance(call.arguments, dict) or call.arguments["table"] != MEMORIES:
        return call
    prompts = [part.content for message in messages for part in message.parts if isinstance(part, SystemPromptPart)]
    is_there = any(f"> table {MEMORIES} (" in prompt for prompt in prompts)
    return call if is_there or "db_create_table" not in shown else LocalCall("db_create_table", MEMORIES_TABLE)


def _next_step(
    results: Sequence[ToolReturnPart], messages: Sequence[ModelMessage], shown: frozenset[str]
) -> LocalCall | None:
    """Return what follows from a tool's answer: what a table was made for, and that a chart is shown."""
    if len(results) != 1 or not {"db_insert", "db_run_view"} <= shown:
        return None
    [result] = results
    is_good = result.model_response_str(wrap_if_error=False).startswith('{"ok":true')
    calls = [part for message in messages for part in message.parts if isinstance(part, ToolCallPart)]
    asked = calls[-1].args_as_dict() if calls else {}
    if result.tool_name == "db_create_table" and asked == MEMORIES_TABLE:  # it may have been there, unnamed
        return _read(_tidy(_last_sentence(messages)))
    if result.tool_name == "db_define_view" and is_good and str(asked.get("name")).endswith(CHART):
        return LocalCall("db_run_view", {"name": asked.get("name")})
    return None


def _obey(text: str, shown: frozenset[str]) -> list[Piece]:
    if HELP.fullmatch(text.rstrip("!.?") or "?"):
        return _help(shown)
    call = _read(text) if len(text) <= LONGEST_SENTENCE else None
    if call is None:
        return [
            Think("This is the demo model. I know no sentence like that."),
            Say(f"I do not understand that. {_can_do(shown)}"),
        ]
    if call.tool not in shown:
        return [
            Think(f"This is the demo model. That sentence needs the tool {call.tool}, and I was not shown it."),
            Say(
                f"For that I need the tool {call.tool}, which this agent does not have. Its settings choose its tools."
            ),
        ]
    return [Think(f"This is the demo model. I know this sentence: it means {call.tool}."), call]


def _plan(phase: int, sentence: str, shown: frozenset[str]) -> list[Piece]:
    """Answer a planner's question about the sentence that the work is about."""
    call = next((piece for piece in _obey(_tidy(sentence), shown) if isinstance(piece, LocalCall)), None)
    steps = ["Say what I can do"] if call is None else [f"Call {call.tool}", "Say what it answered"]
    if phase < 3:
        known = "I know no sentence like that" if call is None else f"I know this sentence: it means {call.tool}"
        return [Think("This is the demo model. I look for a sentence that I know."), Say(f"{known}.")]
    return [Say("\n".join(f"{number}. {step}" for number, step in enumerate(steps, start=1)))]


def _last_sentence(messages: Sequence[ModelMessage]) -> str:
    """Return what was said last, but for what a planner asked."""
    parts = [part for message in messages for part in message.parts if isinstance(part, UserPromptPart)]
    return next((text for part in reversed(parts) if not PLANNING.match(text := _text(part))), "")


def _remember(text: str) -> LocalCall | None:
    """Take what is to be remembered whole: the time at the end of it is not one to wake at."""
    return _understand(text) if text.lower().startswith("remember that ") else None


def _understand(text: str) -> LocalCall | None:
    for sentence in SENTENCES:
        match = sentence.pattern.fullmatch(text)
        arguments = None if match is None else sentence.arguments(match)
        if arguments is not None:
            return LocalCall(sentence.tool, arguments)
    return None


def _schedule(text: str) -> LocalCall | None:
    """Read a sentence with a time in it, before or after what is to be done."""
    if match := RIGHT_AWAY.fullmatch(text):
        return _book({"call_type": "immediate"}, match["rest"])
    for rhythm in RHYTHMS:
        match = rhythm.fullmatch(text)
        timing = None if match is None else _recurring(match)
        booked = None if match is None or timing is None else _book(timing, match["rest"])
        if booked is not None:
            return booked
    words = text.split(" ")
    near_an_end = (count for count in range(1, len(words)) if min(count, len(words) - count) <= MOST_WORDS_OF_A_TIME)
    cuts = [(" ".join(words[:count]), " ".join(words[count:])) for count in near_an_end]
    first = [(before, after) for before, after in reversed(cuts)]
    last = [(after, before) for before, after in cuts if after.lower().startswith(TIMES_AT_THE_END)]
    for when, rest in (*first, *last):  # the longest time comes first
        booked = _book({"call_type": "once", "when": when.rstrip(",:")}, rest) if _is_time(when) else None
        if booked is not None:
            return booked
    return None


def _recurring(said: re.Match[str]) -> dict[str, Any] | None:
    """Say a rhythm as the tool takes it: a cron rule, or an interval."""
    named = said.groupdict()
    if named.get("clock") is not None:
        clock = _seconds(f"today at {named['clock'].lower()}")
        day = named["day"].lower()
        if clock is None:
            return None
        cron = f"{clock // 60 % 60} {clock // 3600} * * {CRON_DAYS.get(day, day[:3])}"
        return {"call_type": "recurring", "cron": cron}
    length = f"{named['count'] or 1} {named['unit'].lower()}{'' if named['count'] in (None, '1') else 's'}"
    seconds = _seconds(f"in {length}")
    if seconds is None:
        return None
    return {"call_type": "recurring", "when": f"in {length}", "interval_seconds": seconds}


def _book(timing: Mapping[str, Any], rest: str) -> LocalCall | None:
    brief = _brief(_tidy(rest))
    if brief is None:
        return None
    booking = {**timing, "internal_comment": f"Demo: {_tidy(rest)}"[:200], "additional_context_message": brief}
    return LocalCall("schedule_recall", booking)


def _brief(text: str) -> str | None:
    """Return the instruction to itself that says the same, or None if it would not understand it later."""
    for sentence in SENTENCES:
        match = sentence.pattern.fullmatch(text)
        if match is not None and sentence.arguments(match) is not None:
            return sentence.brief.format_map(match.groupdict())
    return None


def _seconds(when: str) -> int | None:
    """Return how far ahead a moment is, seen from a midnight."""
    try:
        return int((parse_when(when, SOME_DAY, UTC).at - SOME_DAY).total_seconds())
    except Invalid:
        return None


def _is_time(text: str) -> bool:
    try:
        parse_when(text.rstrip(",:"), SOME_DAY, UTC)
    except Invalid:
        return False
    return True


def _tell(result: ToolReturnPart) -> str:
    text = " ".join(result.model_response_str(wrap_if_error=False).split())
    excerpt = text if len(text) <= LONGEST_EXCERPT else f"{text[:LONGEST_EXCERPT]}…"
    if result.outcome == "interrupted":
        return f"{result.tool_name} was interrupted, and may or may not have done its work: {excerpt}"
    if result.outcome != "success":
        return f"{result.tool_name} failed: {excerpt}"
    if result.tool_name == "db_query" and f"no table '{MEMORIES}'" in text:  # the table is made with the first memory
        return "I remember nothing yet."
    about_data = _tell_data(result)
    if about_data is not None:
        return about_data
    return (
        f"{result.tool_name} answered: {excerpt}" if excerpt else f"{result.tool_name} is done; it had nothing to say."
    )


def _tell_data(result: ToolReturnPart) -> str | None:
    """Say in words what a tool of the database answered; None if that is another tool's, or too long to say."""
    try:
        found = json.loads(result.model_response_str(wrap_if_error=False))["result"]
        match result.tool_name:
            case "db_insert":
                return "I have noted that." if found["table"] == MEMORIES else f"Added to the table {found['table']}."
            case "db_query" if found["columns"] == ["note", "_created_at"]:
                lines = [f"- {', '.join(str(value) for value in row)}" for row in found["rows"]]
                return "\n".join(["This is what I remember:", *lines]) if lines else "I remember nothing yet."
            case "db_run_view":
                lines = [f"- {', '.join(str(value) for value in row)}" for row in found["rows"]]
                is_chart = found["view"].endswith(CHART)
                where = "It is pinned to the tab Home of this agent, and drawn there." if is_chart else ""
                shows = f"The view {found['view']} shows {', '.join(found['columns'])}. {where}"
                return "\n".join([shows.strip(), *lines])
            case _:
                return None
    except (ValueError, KeyError, TypeError):  # what came back is not what these tools answer
        return None


def _help(shown: frozenset[str]) -> list[Piece]:
    return [Think("This is the demo model. I say what I can do."), Say(f"{INTRODUCTION} {_can_do(shown)}")]


def _can_do(shown: frozenset[str]) -> str:
    examples = [sentence.example for sentence in SENTENCES if sentence.tool in shown]
    if "schedule_recall" in shown:
        examples += RECALLS
    if {"schedule_recall", "schedule_next_run"} <= shown:
        examples += CHAINS
    if not examples:
        return f"This agent has no tools that I know. {ADVICE}"
    listed = "\n".join(f"- {example}" for example in examples)
    return f"I know sentences like these:\n\n{listed}\n\n{ADVICE}"


def _tidy(text: str) -> str:
    """Return a sentence without politeness, line breaks and a full stop."""
    text = SPELLED.sub(lambda said: str(NUMBERS[said[1].lower()]), " ".join(text.split()))
    while match := POLITENESS.match(text):
        text = text[match.end() :]
    return re.sub(r"(?:,? please)?[.!?]*$", "", text, flags=re.IGNORECASE)


def _text(part: UserPromptPart) -> str:
    if isinstance(part.content, str):
        return part.content
    texts = [item.content if isinstance(item, TextContent) else item for item in part.content]
    return " ".join(text for text in texts if isinstance(text, str))


def _words(piece: Piece) -> list[Piece]:
    """Cut a text into deltas of a word each."""
    if isinstance(piece, Say | Think):
        return [type(piece)(word) for word in re.findall(r"\S+\s*|\s+", piece.text)]
    return [piece]


def _tokens(texts: Iterable[str]) -> int:
    return sum(len(text) for text in texts) // CHARACTERS_PER_TOKEN
