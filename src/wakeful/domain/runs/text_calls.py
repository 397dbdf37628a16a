"""Finds tool calls that a model wrote as text, in the forms of the usual models and their templates.

A server that does not know a model's format passes its calls on as text. Such a text looks like an answer, but it asks
for something that nobody does.
"""

import ast
import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, cast

MAX_READ = 200_000  # characters; the rest of a text is not searched
_MAX_FOUND = 100
_NAME_KEYS = ("name", "tool", "tool_name", "function", "function_name")
_ARGUMENT_KEYS = ("arguments", "parameters", "args", "input", "tool_input")
_OTHER_KEYS = frozenset({"id", "type", "call_id", "tool_call_id", "index"})


@dataclass(frozen=True, slots=True, kw_only=True)
class TextCall:
    """A tool call in a text."""

    tool: str
    args: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class TextCalls:
    """The calls in a text."""

    calls: Sequence[TextCall]
    is_whole: bool  # there is nothing else in the text


# Marks around a call, which say nothing by themselves.
_MARKS = re.compile(
    r"</?(?:tool_calls?|tools?|function_calls?|functions?|invoke|function|antml:function_calls)>"
    r"|<\|?/?(?:python_tag|tool_call(?:_start|_end|s_section_begin|s_section_end|_begin|_end)?|eom_id|eot_id|im_end)\|?>"
    r"|<\|(?:start|end)_of_role\|>|<\|tool_call\|>"
    r"|\[/?TOOL_CALLS\]|\[TOOL_CALL\]|\[/TOOL_CALL\]"
    r"|<｜[^｜<>]{1,40}｜>"
    r"|```(?:json|tool_calls?|tool_code|xml|python)?|```",
    re.IGNORECASE,
)
# Marks that only a call has, so a text with one is a call even if its tool does not exist.
_SURE = re.compile(
    r"<tool_calls?>|<function=|<\|python_tag\|>|\[TOOL_CALLS\]|<｜tool▁call|<\|tool_call|<invoke\s+name=",
    re.IGNORECASE,
)
_FUNCTION = re.compile(r"<function(?:=|\s+name=)[\"']?([\w.:-]{1,100})[\"']?\s*>(.*?)(?:</function>|\Z)", re.DOTALL)
_INVOKE = re.compile(r"<invoke\s+name=[\"']([\w.:-]{1,100})[\"']\s*>(.*?)(?:</invoke>|\Z)", re.DOTALL)
_PARAMETER = re.compile(
    r"<parameter(?:=|\s+name=)[\"']?([\w.-]{1,100})[\"']?[^<>]{0,40}>((?:(?!<parameter[= ]).)*?)</parameter>", re.DOTALL
)
_KEYED = re.compile(
    r"<tool_call>\s*([\w.:-]{1,100})\s*((?:<arg_key>(?:(?!<arg_key>).)*</arg_value>\s*)*+)(?:</tool_call>|\Z)",
    re.DOTALL,
)
_KEY_VALUE = re.compile(r"<arg_key>([^<]*)</arg_key>\s*<arg_value>((?:(?!<arg_key>).)*?)</arg_value>", re.DOTALL)
_NAMED = re.compile(
    r"(?:\[TOOL_CALLS\]\s*([\w.:-]{1,100})(?:\[CALL_ID\]\w+)?(?:\[ARGS\])?"
    r"|(?:function)?<｜tool▁sep｜>\s*([\w.:-]{1,100})\s*(?:```json)?|<tool_call>\s*([\w.:-]{1,100}))\s*(?=\{)",
)
_PYTHON = re.compile(r"^[ \t]*(?:<\|\w{1,40}\|>)?[ \t]*(?=\[?(?:print\()?[A-Za-z_][\w.]{0,99}\()", re.MULTILINE)
_AFTER = re.compile(r"[ \t]*(?:<\|\w{1,40}\|>)?[ \t]*$", re.MULTILINE)
_CODE_SPAN = re.compile(r"(?<!`)`[^`\n]+`(?!`)")
_DECODER = json.JSONDecoder(strict=False)


def find_calls(text: str, tools: Collection[str]) -> TextCalls | None:
    """Return the calls in a text, of these tools or clearly marked as calls; None if there are none."""
    text = _CODE_SPAN.sub(lambda found: " " * len(found[0]) if found[0] != text.strip() else found[0], text[:MAX_READ])
    is_sure = _SURE.search(text) is not None
    found = [each for each in _all_calls(text) if is_sure or each[1].tool in tools]
    found += [each for each in _python_calls(text, tools) if not _is_inside(each[0], found)]
    if not found:
        return None
    rest = list(text)
    for (start, end), _ in found:
        rest[start:end] = " " * (end - start)
    left = _MARKS.sub("", "".join(rest)).strip(" \t\r\n,;[](){}")
    calls = _without_doubles([call for _, call in sorted(found, key=lambda each: each[0])])
    return TextCalls(calls=calls[:_MAX_FOUND], is_whole=not left)


def occurs_in(calls: TextCalls, said: str, text: str) -> bool:
    """Return whether a text contains what was said, or one of its calls in whatever form."""
    squeezed = _squeeze(text)
    if _squeeze(said) in squeezed:
        return True
    named = [call for call in calls.calls if call.tool in text]
    if not named:
        return False
    if any(call.args and _squeeze(json.dumps(call.args, ensure_ascii=False)) in squeezed for call in named):
        return True
    there = find_calls(text, [call.tool for call in named])
    return there is not None and any(call in there.calls for call in named)


_Found = tuple[tuple[int, int], TextCall]


def _all_calls(text: str) -> list[_Found]:
    found: list[_Found] = []
    for pattern, read in ((_FUNCTION, _read_body), (_INVOKE, _read_body), (_KEYED, _read_keyed)):
        for match in islice(pattern.finditer(text), _MAX_FOUND):
            args = read(match[2])
            if args is not None:
                found.append((match.span(), TextCall(tool=match[1], args=args)))
    for match in islice(_NAMED.finditer(text), _MAX_FOUND):
        value, end = _decode(text, match.end())
        if isinstance(value, dict) and "name" not in value:
            name = match[1] or match[2] or match[3]
            found.append(((match.start(), end), TextCall(tool=name, args=cast("dict[str, Any]", value))))
    for span, value in _json_values(text):
        if not _is_inside(span, found):
            found += [(span, call) for call in _read_json(value)]
    return found


def _read_body(body: str) -> Mapping[str, Any] | None:
    """Return the arguments in the body of an XML-like call: parameters, or a JSON object."""
    given = {match[1]: _read_value(match[2]) for match in _PARAMETER.finditer(body)}
    if given or not body.strip():
        return given
    value, _ = _decode(body, len(body) - len(body.lstrip()))
    return cast("dict[str, Any]", value) if isinstance(value, dict) else None


def _read_keyed(body: str) -> Mapping[str, Any]:
    return {match[1].strip(): _read_value(match[2]) for match in _KEY_VALUE.finditer(body)}


def _read_value(text: str) -> Any:
    """Return a parameter's value: JSON if it is an object, a list, a number or a truth value, otherwise the text."""
    text = text.strip("\n")
    if re.fullmatch(r"\s*(?:[\[{].*|-?\d+(?:\.\d+)?|true|false|null)\s*", text, re.DOTALL):
        try:
            return json.loads(text)
        except ValueError:
            return text
    return text


def _json_values(text: str) -> Iterator[tuple[tuple[int, int], Any]]:
    """Yield the outermost JSON objects and lists of objects in a text, with their places."""
    place = 0
    for _ in range(_MAX_FOUND):
        start = re.compile(r"\{|\[(?=\s*\{)").search(text, place)
        if start is None:
            return
        value, end = _decode(text, start.start())
        if value is not None:
            yield (start.start(), end), value
        place = max(end, start.end())


def _decode(text: str, start: int) -> tuple[Any, int]:
    """Parse the JSON value at a place, and return it with its end; None if there is none."""
    try:
        return _DECODER.raw_decode(text, start)
    except (ValueError, RecursionError):
        return None, start


def _read_json(value: Any) -> list[TextCall]:
    """Return the calls that a JSON value stands for; none if it is other data."""
    if isinstance(value, list):
        return [call for each in cast("list[Any]", value)[:_MAX_FOUND] for call in _read_json(each)]
    if not isinstance(value, dict):
        return []
    given = cast("dict[str, Any]", value)
    if isinstance(given.get("tool_calls"), list):
        return _read_json(given["tool_calls"])
    if isinstance(given.get("function"), dict):
        return _read_json(given["function"])
    name = next((given[key] for key in _NAME_KEYS if isinstance(given.get(key), str)), None)
    argument_keys = [key for key in _ARGUMENT_KEYS if key in given]
    extra = set(given) - set(_NAME_KEYS) - set(_ARGUMENT_KEYS) - _OTHER_KEYS
    if name is None or extra or len(argument_keys) > 1:
        return []
    args: Any = given[argument_keys[0]] if argument_keys else dict[str, Any]()
    if isinstance(args, str):  # JSON in JSON, as in the API itself
        args, _ = _decode(args, 0)
    return [TextCall(tool=name, args=cast("dict[str, Any]", args))] if isinstance(args, dict) else []


def _python_calls(text: str, tools: Collection[str]) -> list[_Found]:
    """Return calls in Python's syntax, on lines of their own: `read_file(path="a.txt")`, or a list of them."""
    found: list[_Found] = []
    for match in islice(_PYTHON.finditer(text), _MAX_FOUND):
        end = _closing(text, match.end())
        if end is None or not _AFTER.match(text, end):
            continue
        calls = _read_python(text[match.end() : end])
        if calls and all(call.tool in tools for call in calls):
            found += [((match.end(), end), call) for call in calls]
    return found


def _closing(text: str, start: int, most: int = 5_000) -> int | None:
    """Return the end of the first bracket from a place on, without those inside strings."""
    depth, quote = 0, ""
    for place in range(start, min(len(text), start + most)):
        each = text[place]
        if quote:
            quote = "" if each == quote and text[place - 1] != "\\" else quote
        elif each in "\"'":
            quote = each
        elif each in "([{":
            depth += 1
        elif each in ")]}":
            depth -= 1
            if depth == 0:
                return place + 1
    return None


def _read_python(source: str) -> list[TextCall] | None:
    """Return the calls of an expression, with keywords and literal values; None if it is something else."""
    try:
        body = ast.parse(source, mode="eval").body
        return [_read_call(each) for each in (body.elts if isinstance(body, ast.List) else [body])]
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return None


def _read_call(node: ast.expr) -> TextCall:
    if not isinstance(node, ast.Call):
        raise ValueError("not a call")
    if isinstance(node.func, ast.Name) and node.func.id == "print" and len(node.args) == 1:
        return _read_call(node.args[0])
    if node.args or not all(each.arg for each in node.keywords):
        raise ValueError("not only keywords")
    args = {str(each.arg): ast.literal_eval(each.value) for each in node.keywords}
    return TextCall(tool=ast.unparse(node.func), args=args)


def _is_inside(span: tuple[int, int], found: Sequence[_Found]) -> bool:
    return any(start <= span[0] and span[1] <= end for (start, end), _ in found)


def _without_doubles(calls: Sequence[TextCall]) -> list[TextCall]:
    """Return calls without one that two patterns found at the same place."""
    kept: list[TextCall] = []
    for call in calls:
        if call not in kept:
            kept.append(call)
    return kept


def _squeeze(text: str) -> str:
    """Return a text without blanks and escapes, so that another layout of the same text is the same."""
    return re.sub(r"[\s\\]+", "", text)
