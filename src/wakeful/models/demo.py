"""The demo model: offline, deterministic, and openly not an LLM.

It knows the sentences of a table and calls the real tools for them, so that a newcomer sees thinking, tool calls and a
wake that fires, without a key. A sentence with a time in it books a recall whose brief is the rest of the sentence.
"""

import asyncio
import json
import re
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
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

from wakeful.core.clock import Clock
from wakeful.core.errors import Invalid
from wakeful.core.texts import FRAME, OWN_BRIEF
from wakeful.core.zones import format_duration, load_zone
from wakeful.models.streaming import LocalCall, Piece, Playback, Say, Spend, StreamingModel, Think
from wakeful.timing.when import WEEKDAYS, parse_when

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


# The sentences that the demo model understands: the tool calls they mean, and its replies to the results.


MAX_EXCERPT = 600  # characters of a result in a reply
MEMORIES = "memories"  # the table that "remember that …" writes to
MEMORIES_TABLE: dict[str, Any] = {
    "name": MEMORIES,
    "purpose": "What my user told me to remember.",
    "columns": [{"name": "note", "type": "text", "required": True}],
}
CHART = "_by_day"  # the suffix of the views that "draw a chart" makes

# A tool and the pattern of its sentence. The help text shows it as an example: without optional parts, with the first
# of several alternatives. {name:words} is an argument, with the words of the example; its pattern is in ARGUMENT
# or before them, as in {name=pattern:words}, otherwise it is `.+?`.
TABLE = r"""
spawn_agent: ask {agent:Wakeful} to {task:list files}
db_insert: (remember|note|keep in mind)( that|) {note:the plumber comes on Friday}
db_query: (what do you remember|(list|show)( me)? (what you remember|your memories))
db_define_view: (draw|make|show)( me)? a chart of (the |my |your )?{table:memories}
db_schema: (what is in|show( me)?|describe) your database
db_create_table: (make|create) a table {table:shopping} (with|of) {columns:item, price real}
db_alter_table: add (the|a) columns? {columns:shop} to {table:shopping}
db_migrate: rename the column {old:price} of {table:shopping} to {new:cost}
db_upsert: add or update {row:item=milk, cost=3} in {table:shopping} by {key:item}
db_insert: add {row:item=milk, cost=2} to {table:shopping}
db_update: (change|set|update) {row:cost=4} in {table:shopping} where {where:item=milk}
db_delete: (delete|remove) from {table:shopping} where {where:item=milk}
db_restore: (restore|bring back) in {table:shopping} where {where:item=milk}
db_query: (query|ask your database:?) {sql:SELECT item, cost FROM shopping}
db_execute: (execute|run) {sql=(insert|update)\b.+?:UPDATE shopping SET cost = cost + 1}
db_define_view: save (the|a) view {name:dear} as {sql:SELECT item FROM shopping WHERE cost > 3}
db_list_views: (list|show)( me)?( all)?( the| your| my|) views
db_run_view: (show|run)( me)? the view {name:dear}
db_drop_view: (drop|forget) the view {name:dear}
db_import: import {path:shopping.csv} into {table:shopping}
db_export: export {table:shopping} to {path:shopping.csv}
scheduler: in {seconds:10} second(s|),? (start|begin|open) a (new|fresh) session (to|and) {message:read notes.txt}
manage_recall: {action=list|show:list}( me)?( all)?( the| my| your)? (recalls|alarms)
manage_recall: {action=skip:skip}( the| your| my|)( next|) (recall|alarm|time|one)
manage_recall: {action=cancel|stop|end:cancel}( the| your| my|)( next)? (recall|alarm)
schedule_next_run: book your next run {when:in 10 minutes} (to|and) {rest:read notes.txt}
cancel_next_run: (cancel|stop|clear) (your|the) next run
notify: (notify|use notify to tell) (me|the user)( that|:|) ["“]?{text:the milk is gone}["”]?
write_file: (write|save|put) ["“]?{content:Buy milk}["”]? (to|into) {path:notes.txt}
list_files: (list|show)( me)?( all)?( the| my)? files
search_files: (search|find)( the files)?( for)? ["“]?{pattern:milk}["”]?
fetch_url: (fetch|get|open|read|check|visit) {url:https://example.org}
run_command: (run|execute) `?{command:ls -l}`?
read_file: (read|check|show|open)( me)?( the)?( file)? {path=\S*[./]\S*?:notes.txt}
"""
ARGUMENT = {
    **dict.fromkeys(("table", "name", "old", "new"), r"[a-z]\w{0,50}"),
    **dict.fromkeys(("row", "where"), r"\w+ ?=.+?"),
    **dict.fromkeys(("agent", "path"), r"\S+?"),
    "columns": r"\w[\w ,]*?",
    "key": r"\w+?",
    "seconds": r"\d{1,5}",
    "sql": r"(?:select|with)\b.+?",
    "url": r"https?://\S+?",
    "when": r"in [\w ]{1,40}?",
}
TYPES = ("text", "integer", "real", "boolean", "date", "datetime")
MANAGING = {"show": "list", "stop": "cancel", "end": "cancel"}
Values = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Sentence:
    """One sentence that the demo model understands."""

    tool: str
    example: str
    pattern: re.Pattern[str]

    def read(self, text: str) -> LocalCall | None:
        """Return the call that a text means, or None if it is not this sentence."""
        match = self.pattern.fullmatch(text)
        try:
            return match and LocalCall(self.tool, ARGUMENTS.get(self.tool, Values)(match.groupdict()))
        except ValueError:
            return None


def _sentence(row: str) -> Sentence:
    tool, _, text = row.partition(": ")
    example, pattern = "", ""
    for part, name, own, words in re.findall(r"([^{]*)(?:\{(\w+)(?:=(.*?))?:(.*?)\})?", text):
        example += re.sub(r"(?:\([^()]*\)|\[[^]]*\]|.)\?", "", part) + words
        pattern += part + (name and f"(?P<{name}>{own or ARGUMENT.get(name, '.+?')})")
    while (shown := re.sub(r"\(([^()|]*)[^()]*\)", r"\1", example)) != example:
        example = shown
    # The briefs that it writes for itself end in "with TOOL".
    return Sentence(tool, example, re.compile(rf"(?:{pattern})(?: with {tool}\b.*)?", re.IGNORECASE | re.DOTALL))


def _pairs(text: str) -> Values:
    """Read "item=milk, price=2"; raises ValueError if it is something else."""
    pairs = [re.split(r" ?= ?", part.strip(), maxsplit=1) for part in re.split(r",|\band\b", text)]
    return {name: _value(value.strip("\"'“”")) for name, value in pairs}


def _value(text: str) -> Any:
    return json.loads(text) if re.fullmatch(r"-?\d{1,15}(\.\d{1,9})?|true|false|null", text) else text


def _columns(text: str) -> list[Values]:
    """Read "item, price real": names, each with a type or of the type text; raises ValueError if it is neither."""
    columns = [part.split() for part in re.split(r",|\band\b", text)]
    if not all(len(words) == 1 or (len(words) == 2 and words[1].lower() in TYPES) for words in columns):
        raise ValueError(text)
    return [{"name": words[0], "type": words[1].lower() if len(words) == 2 else "text"} for words in columns]


def _rename(said: Values) -> Values:
    table, old, new = said["table"], said["old"], said["new"]
    up, down = [f'ALTER TABLE "{table}" RENAME COLUMN "{a}" TO "{b}"' for a, b in ((old, new), (new, old))]
    return {"purpose": f"{old} of {table} is called {new}.", "up_sql": up, "down_sql": down}


def _view(said: Values) -> Values:
    if "table" not in said:
        return said
    table = said["table"].lower()
    return {
        "name": f"{table}{CHART}",
        "sql": f'SELECT date(_created_at) AS day, count(*) AS entries FROM "{table}" GROUP BY day ORDER BY day',
        "description": f"How many {table} were added each day.",
        "render": "bar",
        "pinned": True,
    }


def _insert(said: Values) -> Values:
    if "note" in said:
        return {"table": MEMORIES, "rows": [{"note": said["note"]}]}
    return {"table": said["table"], "rows": [_pairs(said["row"])]}


def _matching(said: Values) -> Values:
    return {"table": said["table"], "where": _pairs(said["where"])}


def _create(said: Values) -> Values:
    purpose = f"What my user keeps in {said['table']}."
    return {"name": said["table"], "purpose": purpose, "columns": _columns(said["columns"])}


def _session(said: Values) -> Values:
    delay = int(said["seconds"]) * 1_000
    return {"op": "create", "kind": "session", "message": said["message"], "delay_ms": delay, "session_config": {}}


def capital(text: str) -> str:
    """Return a text with a capital at its start."""
    return text[:1].upper() + text[1:]


# Make a tool's arguments of the groups of the pattern; a tool that is not here takes the groups themselves.
ARGUMENTS: dict[str, Callable[[Values], Values]] = {
    "db_create_table": _create,
    "db_alter_table": lambda said: {"table": said["table"], "add_columns": _columns(said["columns"])},
    "db_migrate": _rename,
    "db_insert": _insert,
    "db_upsert": lambda said: _insert(said) | {"conflict_columns": [said["key"]]},
    "db_update": lambda said: _matching(said) | {"set": _pairs(said["row"])},
    "db_delete": _matching,
    "db_restore": _matching,
    "db_query": lambda said: said or {"sql": f"SELECT note, _created_at FROM {MEMORIES} ORDER BY id DESC LIMIT 20"},
    "db_define_view": _view,
    "manage_recall": lambda said: {"action": MANAGING.get(action := said["action"].lower(), action)},
    "notify": lambda said: {"title": capital(said["text"])[:100], "body": capital(said["text"])},
    "scheduler": _session,
}
SENTENCES = tuple(map(_sentence, TABLE.strip().splitlines()))


def _listed(lines: Any) -> str:
    return "".join(f"\n- {line}" for line in lines)


def _rows(result: Values) -> str:
    return _listed(", ".join(str(value) for value in row) for row in result["rows"])


def _found(_call: Values, result: Values) -> str:
    if result["columns"] != ["note", "_created_at"]:
        return (
            f"I found this ({', '.join(result['columns'])}):{_rows(result)}" if result["rows"] else "I found no rows."
        )
    return f"This is what I remember:{_rows(result)}" if result["rows"] else "I remember nothing yet."


def _shown(call: Values, result: Values) -> str:
    pinned = " It is pinned to the tab Home of this agent, and drawn there." if call["name"].endswith(CHART) else ""
    return f"The view {call['name']} shows {', '.join(result['columns'])}.{pinned}{_rows(result)}"


def _tables(_call: Values, result: Values) -> str:
    names = [each["name"] for each in result["tables"]]
    return f"My database has these tables:{_listed(names)}" if names else "My database has no tables yet."


# Reply to a text: a pattern, and a template of the call's arguments and the pattern's groups. A text that does not
# match is the reply itself.
TEXT_REPLIES = {
    "spawn_agent": (r"", "{agent} says: {text}"),
    "write_file": (r"has (?P<size>[\d,]+) bytes", "Done: {path} now has {size} bytes."),
    "read_file": (r"", "{path} says:\n\n{text}"),
    "list_files": (r"bytes\)|/$", "These are the files:{lines}"),
    "search_files": (r":\d+ \(offset=", "I found this:{lines}"),
    "fetch_url": (r"BEGIN \w+\n(?P<page>.*?)(?:\nEND \w+)?$", "{url} says:\n\n{page}"),
    "run_command": (r"Exit code 0\.\n(?P<output>.*)", "Done. It printed:\n\n{output}"),
    "notify": (r"inbox: saved", "Done: it is in your inbox."),
    "schedule_recall": (r"you will (?P<wake>wake .+?)\. Recall id", "Done: I will {wake}."),
    "manage_recall": (r"^(?P<done>(?:Skipped|Cancelled).+?) Recall id", "{done}"),
    "schedule_next_run": (r"run is (?P<when>.+?)\. (?:Moved|remaining)", "Done: my next run is {when}."),
    "cancel_next_run": (r"^(?P<done>.+?) Next run id", "{done}"),
    "scheduler": (r"fresh session (?P<when>.+?)\. Schedule id", "Done: a new session starts {when}."),
}
# Reply to data: a template of the call's arguments and the result's fields, or a function of both.
DATA_REPLIES: dict[str, str | Callable[[Values, Any], str]] = {
    "db_schema": _tables,
    "db_create_table": lambda call, _: "" if call == MEMORIES_TABLE else f"Done: there is a table {call['name']} now.",
    "db_alter_table": lambda call, _: f"Done: {call['table']} has {call['add_columns'][-1]['name']} as a column now.",
    "db_migrate": "Done: {purpose}",
    "db_insert": lambda call, _: "I have noted that." if call["table"] == MEMORIES else f"Added to {call['table']}.",
    "db_upsert": "Done in {table}: {inserted} added, {updated} updated.",
    "db_update": "Done: {updated} changed in {table}.",
    "db_delete": "Done: {deleted} deleted from {table}. I can restore that.",
    "db_restore": "Done: {restored} restored in {table}.",
    "db_query": _found,
    "db_execute": "Done: {changed} changed.",
    "db_define_view": lambda call, _: "" if call["name"].endswith(CHART) else f"Done: I saved the view {call['name']}.",
    "db_list_views": lambda _, views: f"These are the views:{_listed(each['name'] for each in views) or ' none yet.'}",
    "db_run_view": _shown,
    "db_drop_view": "Done: the view {view} is gone.",
    "db_import": "Done: {imported} imported into {table}.",
    "db_export": "Done: {path} now has {bytes} bytes.",
}


# A time as these tools write it for models: with its offset and zone, then relative in parentheses.
BOOKING = ("schedule_recall", "manage_recall", "schedule_next_run", "cancel_next_run", "scheduler")
TIME = re.compile(r"(?:\bat )?(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d[+-]\d\d:\d\d) (\S+)(?= \()")
EVERY = re.compile(r"(?<=\bevery )(\d+) s\b")
DAYS = {-1: "yesterday", 0: "today", 1: "tomorrow"}


def _in_words(text: str, now: datetime) -> str:
    """Write the times in a text as people do: "today 13:25 (in 10 s)"."""

    def write(found: re.Match[str]) -> str:
        at, today = datetime.fromisoformat(found[1]), now.astimezone(load_zone(found[2])).date()
        year = "" if at.year == today.year else f" {at.year}"
        return f"{DAYS.get((at.date() - today).days) or f'{at:%a} {at.day} {at:%b}{year}'} {at:%H:%M}"

    return EVERY.sub(lambda found: format_duration(timedelta(seconds=int(found[1]))), TIME.sub(write, text))


def reply_to(result: ToolReturnPart, call: Values, now: datetime) -> str:
    """Return what the demo model says about the result of a call."""
    text = result.model_response_str(wrap_if_error=False).strip()
    if result.tool_name in BOOKING:
        text = _in_words(text, now)
    if result.tool_name in DATA_REPLIES:
        return _reply_to_data(text, DATA_REPLIES[result.tool_name], call)
    excerpt = text if len(text) <= MAX_EXCERPT else f"{text[:MAX_EXCERPT]}…"
    if result.metadata == {"success": False}:
        if result.tool_name == "read_file" and text.startswith(f"There is no {(path := call.get('path'))!r} in"):
            return f"There is no {path} yet. Tell me what to put there first: “write buy milk to {path}”."
        return f"That went wrong: {excerpt}"
    pattern, template = TEXT_REPLIES.get(result.tool_name, (r"", "{text}"))
    groups = re.search(pattern, excerpt, re.DOTALL)
    about = call | {"text": excerpt, "lines": _listed(excerpt.splitlines())}
    try:
        return template.format_map(about | groups.groupdict()) if groups else excerpt
    except KeyError:  # it is not known what was called
        return excerpt


def _reply_to_data(text: str, reply: str | Callable[[Values, Any], str], call: Values) -> str:
    try:
        data = json.loads(text)
        if not data["ok"]:  # the table of memories is made with the first one
            is_new = f"no table '{MEMORIES}'" in data["message"]
            return "I remember nothing yet." if is_new else f"That went wrong: {data['message']}"
        return reply.format_map(call | data["result"]) if isinstance(reply, str) else reply(call, data["result"])
    except (ValueError, LookupError, TypeError):  # interrupted, or too long and cut
        return text[:MAX_EXCERPT]
