"""Reads the events of a streamed answer."""

import json
from collections.abc import Mapping
from typing import Any

from wakeful.client.errors import NotReached, RunFailed
from wakeful.client.values import Answer


class AnswerReader:
    """Collects an answer from the lines of its stream."""

    def __init__(self, headers: Mapping[str, str]) -> None:
        self._headers = headers
        self._texts: list[str] = []
        self._thoughts: list[str] = []
        self._finish = "stop"
        self._usage: Mapping[str, int] = {}
        self._is_done = False

    def read(self, line: str) -> str:
        """Read one line, and return the text that it adds."""
        if not line.startswith("data:"):
            return ""  # a comment, which keeps the connection open
        data = line[5:].strip()
        if data == "[DONE]":
            self._is_done = True
            return ""
        return self._read_event(json.loads(data))

    @property
    def answer(self) -> Answer:
        """Return the whole answer, once the stream has ended."""
        if not self._is_done:
            raise NotReached(
                "The connection ended before the answer did. The session has what was written so far; ask again, or "
                "look there."
            )
        return Answer(
            text="".join(self._texts),
            session_id=self._headers["X-Wakeful-Session"],
            run_id=self._headers["X-Wakeful-Run"],
            reasoning="".join(self._thoughts),
            is_cut_off=self._finish == "length",
            input_tokens=self._usage.get("prompt_tokens", 0),
            output_tokens=self._usage.get("completion_tokens", 0),
        )

    def _read_event(self, event: Mapping[str, Any]) -> str:
        if "error" in event:
            error = event["error"]
            raise RunFailed(error["message"], code=error["code"], text="".join(self._texts))
        self._usage = event.get("usage") or self._usage
        added = ""
        for choice in event["choices"]:
            self._finish = choice["finish_reason"] or self._finish
            self._thoughts.append(choice["delta"].get("reasoning_content") or "")
            added += choice["delta"].get("content") or ""
        self._texts.append(added)
        return added
