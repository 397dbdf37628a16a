"""Check a server that was killed many times, only by its REST API and by what its agents really did."""

import re
from collections import Counter
from datetime import datetime
from typing import Any

from crash.clients import Visitors
from crash.server_process import FINAL, Conversation, ServerProcess
from crash.task_model import BOOKED, TABLE, TASK, Asked, TaskModel, answer_to, instruct

ATTEMPTS_USED_UP = "attempts_used_up"
GIVEN_UP = (ATTEMPTS_USED_UP, "starts_used_up")  # it died too often: while executing, or before its first call


class Judge:
    """Everything the server returns after the last kill, compared with what it had acknowledged."""

    def __init__(self, node: ServerProcess, visitors: Visitors, model: TaskModel) -> None:
        self._node = node
        self._visitors = visitors
        self._promises = visitors.promises
        self._model = model
        self.faults = list(visitors.promises.faults)

    async def read(self) -> None:
        """Read everything."""
        self.lines = await self._read_files()  # first, because it starts runs of its own
        self.wakes = await self._list("/wakes", "wakes")
        self.runs = await self._list("/runs", "runs")
        sessions = await self._list("/sessions", "sessions")
        self.messages: list[dict[str, Any]] = []
        for session in sessions:
            for message in (await self._node.get(f"/sessions/{session['id']}"))["messages"]:
                self.messages.append(message | {"session_id": session["id"]})
        self.rows = Counter[str]()
        for agent in self._visitors.agents:
            offset = 0
            while True:
                page = await self._node.get(f"/agents/{agent}/db/tables/{TABLE}/rows?limit=1000&offset={offset}")
                place = page["columns"].index("token")
                self.rows.update(row[place] for row in page["rows"])
                offset += 1000
                if offset >= page["total"]:
                    break
        self.notices = (await self._node.get("/notifications?limit=200"))["notifications"]
        self.run_of = {run["id"]: run for run in self.runs}
        self.runs_of_wake: dict[str, list[dict[str, Any]]] = {}
        for run in self.runs:
            self.runs_of_wake.setdefault(run["wake_id"], []).append(run)

    async def _list(self, path: str, name: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        page = ""
        while True:
            answer = await self._node.get(f"{path}?limit=200{page}")
            found += answer[name]
            if not answer.get("next"):
                return found
            page = f"&page={answer['next']}"

    async def _read_files(self) -> Counter[str]:
        """Have each agent read its file, and return how often each line is there."""
        lines = Counter[str]()
        talk = Conversation(self._node, self._node.folder)
        for number, agent in enumerate(self._visitors.agents):
            token = f"T90000{number}"
            asked = {"title": "The end", "agent_id": agent}
            talk.id = (await self._node.send("POST", "/sessions", asked))["id"]
            run = await talk.wait_for_end(await talk.say(instruct("read", token)))
            self._expect(run["status"] == "success", f"the file could not be read: {run}")
            lines.update(re.findall(r"\bT\d\w*", self._model.files.get(token, "")))
        return lines

    def _expect(self, is_so: bool, fault: str) -> None:
        if not is_so:
            self.faults.append(fault)

    # ── Checks ──────────────────────────────────────────────────────────────────────────────────────────────────────

    async def judge(self) -> None:
        self._judge_runs()
        self._judge_wakes()
        self._judge_messages()
        self._judge_effects()
        for wake in self.wakes:
            await self._judge_why(wake)

    def _judge_runs(self) -> None:
        for run in self.runs:
            what = f"run {run['id']} ({run['kind'] or 'message'}, {run['status']}, {run['reason']}, {run['error']})"
            self._expect(run["status"] in FINAL, f"{what} never ended")
            if run["status"] == "interrupted":
                asked = self._asked_in(run)
                self._expect(run["reason"] in GIVEN_UP, f"{what}: interrupted for another reason")
                if run["reason"] == ATTEMPTS_USED_UP:
                    self._expect(asked is not None, f"{what} reached no model, and was given up")
            elif not _was_replaced(run):
                self._expect(run["status"] == "success", f"{what} did not succeed")
            if run["started_at"] is not None:
                self._expect(_at(run["started_at"]) >= _at(run["nominal_at"]), f"{what} started early")
        taken = Counter(run["wake_id"] for run in self.runs if run["wake_id"])
        for wake_id, times in taken.items():
            self._expect(times == 1, f"wake {wake_id} has {times} runs")

    def _judge_wakes(self) -> None:
        found = {wake["id"]: wake for wake in self.wakes}
        self._expect(len(found) == len(self.wakes), "a wake is listed twice")
        for token, wake_id in self._promises.wakes.items():
            self._expect(wake_id in found, f"{token}: the acknowledged wake {wake_id} is lost")
        for token, asked in self._model.asked.items():
            if asked.kind in ("recall", "message", "session", "next") and asked.is_done:
                for wake_id in BOOKED.findall(asked.result or ""):
                    self._expect(wake_id in found, f"{token}: the wake {wake_id} that the agent booked is lost")
        tokens = Counter(_token_in(wake["instructions"]) for wake in self.wakes)
        for token, times in tokens.items():
            self._expect(times == 1, f"{token} was booked {times} times")
            self._expect(token not in self._promises.refused, f"{token} was refused, and booked")
        for wake in self.wakes:
            self._judge_wake(wake)

    def _judge_wake(self, wake: dict[str, Any]) -> None:
        token, runs = _token_in(wake["instructions"]), self.runs_of_wake.get(wake["id"], [])
        what = f"{token}: wake {wake['id']} ({wake['kind']}, {wake['status']}, {wake['reason']})"
        if wake["status"] == "superseded":
            self._expect(wake["kind"] == "next_run" and all(map(_was_replaced, runs)), f"{what} ran, or should have")
            self._expect(token not in self._model.asked, f"{what}: the model was asked although it was replaced")
            return
        self._expect(len(runs) == 1, f"{what} has {len(runs)} runs")
        is_given_up = bool(runs) and runs[0]["status"] == "interrupted"
        self._expect(is_given_up or wake["status"] == "fired", f"{what} did not fire")
        asked = self._model.asked.get(token)
        if asked is not None:
            self._expect(min(asked.at) >= _at(wake["nominal_at"]), f"{what}: the model was asked early")

    def _judge_messages(self) -> None:
        said = Counter(_token_in(each["content"]) for each in self.messages if each["role"] == "user")
        answers = Counter(each["content"] for each in self.messages if each["role"] == "assistant")
        said.pop("", None)
        for token, times in said.items():
            self._expect(times == 1, f"{token} stands {times} times in a transcript")
        for token, run_id in self._promises.messages.items():
            run = self.run_of.get(run_id)
            self._expect(said[token] == 1, f"{token}: the acknowledged message is lost")
            self._expect(run is not None, f"{token}: the run {run_id} of an acknowledged message is lost")
        for token, asked in self._model.asked.items():
            run = self._run_of(token)
            times = answers[answer_to(token)]
            ended = run["status"] if run else "no run"
            expected = (1,) if ended == "success" else (0, 1)
            self._expect(times in expected, f"{token}: its answer stands {times} times ({asked.kind}, {run})")
            self._expect(asked.after_the_answer == 0, f"{token}: the model was asked again after its saved answer")
            self._expect(len(self._model.results[token]) <= 1, f"{token}: its tool call has two results")
        for words, times in self._promises.seen.items():
            self._expect(times == 1, f"a socket told the end of {words!r} {times} times")
            self._expect(answers[words] == 1, f"{words!r} came over a socket, and stands {answers[words]} times")

    def _judge_effects(self) -> None:
        titles = Counter(each["title"] for each in self.notices)
        done_by = {"note": self.lines, "row": self.rows, "tell": titles}
        for token, asked in self._model.asked.items():
            counted = done_by.get(asked.kind)
            if counted is None:
                continue
            self._expect(counted[token] <= 1, f"{token}: {asked.kind} was done {counted[token]} times")
            if asked.is_done and (asked.kind != "tell" or len(self.notices) < 200):
                self._expect(counted[token] == 1, f"{token}: {asked.kind} was done, and is lost: {asked.result!r}")
        for token in self._promises.rows:
            self._expect(self.rows[token] == 1, f"{token}: an acknowledged row stands {self.rows[token]} times")
        for token, times in (self.rows + self.lines).items():
            self._expect(times == 1, f"{token} was done {times} times")
            self._expect(token not in self._promises.refused, f"{token} was refused, and done")

    async def _judge_why(self, wake: dict[str, Any]) -> None:
        codes = [each["code"] for each in (await self._node.get(f"/wakes/{wake['id']}/why"))["decisions"]]
        what = f"wake {wake['id']} ({wake['status']}): {codes}"
        self._expect(codes.count("booked") == 1 and codes[0] == "booked", f"{what}: not booked once, and first")
        for run in self.runs_of_wake.get(wake["id"], []):
            self._expect(codes.count(run["status"]) == 1, f"{what}: its run ended {run['status']}")
        if not self.runs_of_wake.get(wake["id"]):
            said = {wake["status"], f"wake_{wake['status']}"} & set(codes)
            self._expect(bool(said), f"{what}: it does not say why it has no run")

    # ── Matching runs and tasks ─────────────────────────────────────────────────────────────────────────────────────

    def _run_of(self, token: str) -> dict[str, Any] | None:
        if token in self._promises.messages:
            return self.run_of.get(self._promises.messages[token])
        for wake in self.wakes:
            if _token_in(wake["instructions"]) == token:
                return next(iter(self.runs_of_wake.get(wake["id"], [])), None)
        return next((self.run_of.get(each["run_id"]) for each in self.messages if _is_answer(each, token)), None)

    def _asked_in(self, run: dict[str, Any]) -> Asked | None:
        """Return what the model was asked in a run."""
        if run["wake_id"]:
            wake = next((each for each in self.wakes if each["id"] == run["wake_id"]), None)
            return None if wake is None else self._model.asked.get(_token_in(wake["instructions"]))
        tokens = [token for token, run_id in self._promises.messages.items() if run_id == run["id"]]
        # A message and its run have the same time; nothing else says that they belong together.
        tokens += [
            _token_in(each["content"])
            for each in self.messages
            if (each["role"], each["session_id"], each["created_at"]) == ("user", run["session_id"], run["queued_at"])
        ]
        return next((self._model.asked[token] for token in tokens if token in self._model.asked), None)

    def ledger(self, kills: int, seconds: float) -> str:
        """Write the figures down."""
        asked = self._model.asked.values()
        ends = Counter(
            f"{run['status']}{f' ({why})' if (why := run['reason'] or run['note']) else ''}" for run in self.runs
        )
        return "\n".join(
            (
                f"{kills} kills in {seconds:.0f} s",
                f"tried: {len(self._promises.tried)}, refused {len(self._promises.refused)}, by doors "
                f"{dict(self._promises.doors)}; 503: {dict(self._promises.unavailable)}",
                f"acknowledged: {len(self._promises.messages)} messages, {len(self._promises.wakes)} wakes, "
                f"{len(self._promises.rows)} rows",
                f"wakes: {len(self.wakes)} {dict(Counter(wake['status'] for wake in self.wakes))}",
                f"runs: {len(self.runs)} {dict(ends)}; attempts {dict(Counter(run['attempt'] for run in self.runs))}",
                f"model: {len(asked)} tasks, {sum(len(each.at) for each in asked)} requests, "
                f"{sum(each.is_in_doubt for each in asked)} calls in doubt",
                f"effects: {sum(self.lines.values())} lines, {sum(self.rows.values())} rows",
                f"faults: {len(self.faults)}",
            )
        )


def _at(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


def _was_replaced(run: dict[str, Any]) -> bool:
    """Return whether the run was still queued when another booking took its wake's slot."""
    return (run["status"], run["reason"], run["started_at"]) == ("skipped", "superseded", None)


def _token_in(text: str) -> str:
    found = TASK.search(text or "")
    return found[2] if found else ""


def _is_answer(message: dict[str, Any], token: str) -> bool:
    return message["role"] == "assistant" and message["content"] == answer_to(token)
