"""The stream of a run as the pieces of one answer: text and thoughts, in order."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from wakeful.domain.types import RunNote

# The limits that a client knows as the length of an answer.
_LENGTHS: frozenset[RunNote] = frozenset({"output_limit", "answer_too_long", "budget", "iteration_limit"})
_BETWEEN = "\n\n"


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of the answer, or of the reasoning before it."""

    kind: Literal["text", "thought"]
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFailure:
    """Why a run has no answer."""

    code: str
    message: str


class AnswerPieces:
    """Reads the frames of a run, and returns what to pass on for each."""

    def __init__(self) -> None:
        self._said = ""
        self._is_between = False  # a tool was called since the last text
        self._readers: Mapping[str, Callable[[Mapping[str, Any]], list[Piece]]] = {
            "stream_delta": lambda frame: self._say(frame["delta"]),
            "thinking_delta": lambda frame: [Piece("thought", frame["delta"])],
            "turn_thinking": lambda frame: [Piece("thought", frame["thinking"] + _BETWEEN)],
            "approval_requested": lambda frame: [Piece("thought", _ask_on_page(frame))],
            "stream_end": lambda frame: self._end(frame["content"]),
        }

    def read(self, frame: Mapping[str, Any]) -> list[Piece]:
        if frame.get("is_subagent"):
            return []
        if frame["type"] in ("tool_started", "tool_call", "server_note", "stream_start"):
            self._is_between = True
        reader = self._readers.get(frame["type"])
        return [] if reader is None else [piece for piece in reader(frame) if piece.text]

    def _say(self, text: str) -> list[Piece]:
        is_apart = self._is_between and bool(self._said) and not self._said.endswith("\n")
        self._is_between = False
        text = (_BETWEEN if is_apart else "") + text
        self._said += text
        return [Piece("text", text)]

    def _end(self, content: str) -> list[Piece]:
        """Say what was not streamed: why the run ended without an answer of the model."""
        if "".join(self._said.split()).endswith("".join(content.split())):
            return []
        self._is_between = True
        return self._say(content)


def find_failure(frame: Mapping[str, Any]) -> RunFailure | None:
    """Return why a run ended without an answer, if this frame says so."""
    if frame["type"] == "error":
        return RunFailure(code=frame["code"], message=frame["message"])
    if frame["type"] == "stream_stopped":
        return RunFailure(code="stopped", message="A person stopped the run before it had answered.")
    return None


def finish_reason(note: RunNote | None) -> Literal["stop", "length"]:
    return "length" if note in _LENGTHS else "stop"


def _ask_on_page(frame: Mapping[str, Any]) -> str:
    return f"Waiting for approval on Wakeful's page: {frame.get('sentence') or frame['tool']}\n"
