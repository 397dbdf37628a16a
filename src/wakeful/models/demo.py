"""The demo model: offline, deterministic, and openly not an LLM.

It knows the sentences of `demo.toml` and calls the real tools for them: a newcomer sees thinking, tool calls and a
wake that fires, without a key. A sentence with a time in it books a recall whose brief is the rest of the sentence.
"""

import asyncio
import json
import re
import tomllib
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Sequence
from contextlib import aclosing, asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple, cast

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

from wakeful.core.clock import Clock
from wakeful.core.errors import Invalid
from wakeful.core.texts import FRAME, OWN_BRIEF
from wakeful.core.zones import format_duration, load_zone
from wakeful.models.streaming import LocalCall, Piece, Playback, Say, Spend, StreamingModel, Think
from wakeful.timing.when import parse_when

_DATA = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
_PATTERNS = {name: re.compile(text, re.IGNORECASE | re.DOTALL) for name, text in _DATA["patterns"].items()}
PLANNING = "[Planning "  # the start of a question of a run's planner
SUMMARY = "[Summary]"  # the start of a request to compress a conversation
MEMORIES = "memories"  # the table that "remember that …" writes to
CHART = "_by_day"  # the suffix of the views that "draw a chart" makes
DAYS = {-1: "yesterday", 0: "today", 1: "tomorrow"}
MAX_SENTENCE = 20_000  # characters
MAX_EXCERPT = 600  # characters of a result in a reply
MAX_WORDS_OF_A_TIME = 12
SOME_DAY = datetime(2000, 1, 1, tzinfo=UTC)  # at midnight every time of that day is still ahead


class DemoModel(StreamingModel):
    """Answer the sentences of `demo.toml`, word by word."""

    def __init__(self, clock: Clock, *, delay: float = 0.01) -> None:
        super().__init__()
        self._clock = clock
        self._delay = delay  # seconds between words, so that a person sees a stream

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
        now = self._clock.now()
        async with aclosing(self._stream(_answer(messages, shown, now), tokens=size // 4)) as stream:
            yield Playback(model_request_parameters, self, now, stream)

    async def _stream(self, pieces: Sequence[Piece], tokens: int) -> AsyncGenerator[Piece]:
        yield Spend(tokens, 0)
        for piece in pieces:
            words = re.findall(r"\S+\s*|\s+", piece.text) if isinstance(piece, Say | Think) else [""]
            for word in words:
                yield type(piece)(word) if isinstance(piece, Say | Think) else piece
                yield Spend(0, 1)
                await asyncio.sleep(self._delay)


class Sentence(NamedTuple):
    """One sentence that the demo model understands."""

    tool: str
    example: str
    pattern: re.Pattern[str]
    call: dict[str, Any] | None  # None: the arguments are the groups of the pattern

    def read(self, text: str) -> LocalCall | None:
        """Return the call that a text means, or None if it is not this sentence."""
        match = self.pattern.fullmatch(text)
        try:
            said = match and {name: _READ.get(name, str)(text) for name, text in match.groupdict().items()}
            return said if said is None else LocalCall(self.tool, said if self.call is None else _fill(self.call, said))
        except ValueError:
            return None


def _sentence(row: dict[str, Any]) -> Sentence:
    tool, text = row["tool"], row["says"]
    example, pattern = "", ""
    for part, name, own, words in re.findall(r"([^{]*)(?:\{(\w+)(?:=(.*?))?:(.*?)\})?", text):
        example += re.sub(r"(?:\([^()]*\)|\[[^]]*\]|.)\?", "", part) + words
        pattern += part + (name and f"(?P<{name}>{own or _DATA['arguments'].get(name, '.+?')})")
    while (shown := re.sub(r"\(([^()|]*)[^()]*\)", r"\1", example)) != example:
        example = shown
    # The briefs that it writes for itself end in "with TOOL".
    return Sentence(
        tool, example, re.compile(rf"(?:{pattern})(?: with {tool}\b.*)?", re.IGNORECASE | re.DOTALL), row.get("call")
    )


def _fill(template: Any, said: dict[str, Any]) -> Any:
    """Fill the groups of a sentence into the arguments of its call; ValueError: it is another sentence."""
    if isinstance(template, dict):
        return {name: _fill(value, said) for name, value in cast("dict[str, Any]", template).items()}
    if isinstance(template, list):
        return [_fill(value, said) for value in cast("list[Any]", template)]
    if isinstance(template, str):
        name = template.strip("{}")
        return said[name] if template == f"{{{name}}}" else template.format_map(said)
    return template


def _columns(text: str) -> list[dict[str, str]]:
    """Read "item, price real": names, each with a type or of the type text."""
    columns = [part.split() for part in re.split(r",|\band\b", text)]
    return [{"name": name, "type": "".join(kind).lower() or "text"} for name, *kind in columns]


def _row(text: str) -> dict[str, Any]:
    """Read "item=milk, price=2"."""
    pairs = [re.split(r" ?= ?", part.strip(), maxsplit=1) for part in re.split(r",|\band\b", text)]
    return {name: _value(value.strip("\"'“”")) for name, value in pairs}


def _value(text: str) -> Any:
    return json.loads(text) if re.fullmatch(r"-?\d{1,15}(\.\d{1,9})?|true|false|null", text) else text


def capital(text: str) -> str:
    """Return a text with a capital at its start."""
    return text[:1].upper() + text[1:]


def _action(said: str) -> str:
    return {"show": "list", "stop": "cancel", "end": "cancel"}.get(said.lower(), said.lower())


def _milliseconds(said: str) -> int:
    return int(said) * 1_000


_READ: dict[str, Callable[[str], Any]] = {
    "action": _action,
    "columns": _columns,
    "row": _row,
    "seconds": _milliseconds,
    "text": capital,
}
SENTENCES = tuple(map(_sentence, _DATA["sentences"]))


def _answer(messages: Sequence[ModelMessage], shown: frozenset[str], now: datetime) -> list[Piece]:
    """Answer the last message, given the names of the tools."""
    results, calls = _last_results(messages)
    if results:
        replies = [_reply(result, calls.get(result.tool_call_id, {}), now) for result in results]
        return [Say("\n\n".join(reply for reply in replies if reply))]
    parts = [part for message in messages for part in message.parts]
    texts = [_text(part) for part in parts if isinstance(part, UserPromptPart)]
    said = [text for text in texts if not text.startswith(FRAME)] or ["help"]  # data of a hook is not an order
    prompt = "\n".join(part.content for part in parts if isinstance(part, SystemPromptPart))
    if said[-1].startswith(SUMMARY):
        return [Say(f"The demo model cannot summarize. The conversation began with: {said[-1][len(SUMMARY) :][:600]}")]
    if said[-1].startswith(PLANNING):
        return [Say("1. Do what was asked of me")]
    return _obey(_tidy(said[-1]), shown, prompt)


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


def _text(part: UserPromptPart) -> str:
    if isinstance(part.content, str):
        brief = part.content.removeprefix(OWN_BRIEF)
        return brief if brief == part.content else re.sub("^> ", "", brief, flags=re.MULTILINE)
    texts = [item.content if isinstance(item, TextContent) else item for item in part.content]
    return " ".join(text for text in texts if isinstance(text, str))


def _obey(text: str, shown: frozenset[str], prompt: str) -> list[Piece]:
    """Return the calls that a sentence means, or a text if there is no such sentence or tool."""
    think = Think("This is the demo model, which knows some sentences.")
    if _PATTERNS["help"].fullmatch(text.rstrip("!.?") or "?"):
        is_demo = "This is the demo model, not an LLM: it knows a few fixed sentences and calls real tools for them."
        return [think, Say(f"{is_demo} {_can_do(shown)}")]
    calls = _read(text) if len(text) <= MAX_SENTENCE else []
    if not calls:
        return [think, Say(f"I do not understand that. {_can_do(shown)}")]
    tool, arguments = calls[0].tool, calls[0].arguments
    if tool not in shown:
        lack = f"For that I need the tool {tool}, which this agent does not have. Its settings choose its tools."
        return [think, Say(lack)]
    match tool, arguments:
        case "db_insert", {"table": table} if table == MEMORIES and f"> table {MEMORIES} (" not in prompt:
            columns = [{"name": "note", "type": "text", "required": True}]
            table = {"name": MEMORIES, "purpose": "What my user told me to remember.", "columns": columns}
            calls = [LocalCall("db_create_table", table), *calls]
        case "db_define_view", {"name": name}:
            calls = [*calls, LocalCall("db_run_view", {"name": name})]
        case _:
            pass
    return [think, *(call for call in calls if call.tool in shown)]


def _can_do(shown: frozenset[str]) -> str:
    examples = [sentence.example for sentence in SENTENCES if sentence.tool in shown]
    examples += _DATA["timed_examples"] if "schedule_recall" in shown else ()
    if not examples:
        return f"This agent has no tools that I know. {_DATA['advice']}"
    return "\n- ".join(["I know sentences like these:\n", *examples]) + f"\n\n{_DATA['advice']}"


def _read(text: str) -> list[LocalCall]:
    """Find the calls that a sentence means. At the end of a chain, the next run is booked with the same brief."""
    chain = _PATTERNS["chain"].fullmatch(text)
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
    rhythms = [pattern for name, pattern in _PATTERNS.items() if name.startswith("every_")]
    for match in filter(None, (rhythm.fullmatch(text) for rhythm in rhythms)):
        if (rhythm := _rhythm(match.groupdict())) is not None:
            yield {"call_type": "recurring", **rhythm}, match["rest"]
    words = text.split(" ")
    near_an_end = (count for count in range(1, len(words)) if min(count, len(words) - count) <= MAX_WORDS_OF_A_TIME)
    cuts = [(" ".join(words[:count]), " ".join(words[count:])) for count in near_an_end]
    last = [(after, before) for before, after in cuts if _PATTERNS["time_at_the_end"].match(after)]
    for when, rest in (*reversed(cuts), *last):  # the longest time first
        if _seconds(when.rstrip(",:")) is not None:
            yield {"call_type": "once", "when": when.rstrip(",:")}, rest


def _rhythm(said: dict[str, Any]) -> dict[str, Any] | None:
    """Return the tool's arguments for a rhythm: a cron rule, or an interval."""
    if "clock" in said:
        clock, day = _seconds(f"today at {said['clock'].lower()}"), said["day"].lower()
        days = {"day": "*", "weekday": "1-5"}.get(day, day[:3])
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
    """Remove politeness, line breaks and the full stop."""
    text = " ".join(text.split())
    while match := _PATTERNS["politeness"].match(text):
        text = text[match.end() :]
    return re.sub(r"(?:,? please)?[.!?]*$", "", text, flags=re.IGNORECASE)


def _reply(result: ToolReturnPart, call: dict[str, Any], now: datetime) -> str:
    """Return what the demo model says about the result of a call."""
    tool, text = result.tool_name, result.model_response_str(wrap_if_error=False).strip()
    if tool.startswith("db_"):
        return _reply_of_database(tool, text, call)
    if tool in ("schedule_recall", "manage_recall", "schedule_next_run", "cancel_next_run", "scheduler"):
        text = _in_words(text, now)
    excerpt = text if len(text) <= MAX_EXCERPT else f"{text[:MAX_EXCERPT]}…"
    if result.metadata == {"success": False}:
        if tool == "read_file" and text.startswith(f"There is no {(path := call.get('path'))!r} in"):
            return f"There is no {path} yet. Tell me what to put there first: “write buy milk to {path}”."
        return f"That went wrong: {excerpt}"
    pattern, template = _DATA["replies"].get(tool, ("", "{text}"))
    groups = re.search(pattern, excerpt, re.DOTALL)
    about = call | {"text": excerpt, "lines": _listed(excerpt.splitlines())}
    try:
        return template.format_map(about | groups.groupdict()) if groups else excerpt
    except KeyError:  # it is not known what was called
        return excerpt


def _reply_of_database(tool: str, text: str, call: dict[str, Any]) -> str:
    try:
        data = json.loads(text)
        if not data["ok"]:  # the table of memories is made with the first one
            is_new = f"no table '{MEMORIES}'" in data["message"]
            return "I remember nothing yet." if is_new else f"That went wrong: {data['message']}"
        columns, rows = data["result"].get("columns", []), data["result"].get("rows", [])
        if call.get("table") == MEMORIES or call.get("name") == MEMORIES:
            return "I have noted that." if tool == "db_insert" else ""
        listed = _listed(", ".join(map(str, row)) for row in rows) if rows else " no rows."
        template = _DATA["replies"][tool][1]
        return template.format_map(call | data["result"] | {"fields": ", ".join(columns), "listed": listed})
    except (ValueError, LookupError, TypeError, AttributeError):  # interrupted, or too long and cut
        return text[:MAX_EXCERPT]


def _listed(lines: Iterable[str]) -> str:
    return "".join(f"\n- {line}" for line in lines)


def _in_words(text: str, now: datetime) -> str:
    """Write the times in a text as people do: "today 13:25 (in 10 s)"."""

    def write(found: re.Match[str]) -> str:
        at, today = datetime.fromisoformat(found[1]), now.astimezone(load_zone(found[2])).date()
        year = "" if at.year == today.year else f" {at.year}"
        return f"{DAYS.get((at.date() - today).days) or f'{at:%a} {at.day} {at:%b}{year}'} {at:%H:%M}"

    return _PATTERNS["every"].sub(
        lambda found: format_duration(timedelta(seconds=int(found[1]))), _PATTERNS["time"].sub(write, text)
    )
