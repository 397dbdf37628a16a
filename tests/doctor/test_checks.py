"""`wakeful doctor`: green on a fresh start; for each fault red, with advice that is followed here to its end."""

import asyncio
import json
import os
import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.parse import urlsplit

import asyncpg
import pytest

from openai_server import chunk, event
from small_disk import fill, small_disk
from terminal import Terminal
from upgrade.old_data import copy_old_data
from used_data import Place

KEY = "the-right-key"
RECOVERY_KEY = re.compile(r"(?:[A-Z2-7]{4}-){13}[A-Z2-7]{4}")


class Doctor:
    """A place where the doctor is called."""

    def __init__(self, folder: Path, **settings: str) -> None:
        self.place = Place(folder)
        del self.place.environment["WAKEFUL_TOKEN"]
        self.place.environment |= {"WAKEFUL_PORT": "0", **settings}
        self.folder = folder

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return Terminal(self.place.environment, self.folder).run(*arguments)

    def look(self, *options: str) -> dict[str, dict[str, Any]]:
        """Return every check by its name; the exit code must fit."""
        done = self.run("doctor", "--json", *options)
        found = json.loads(done.stdout)
        assert done.returncode == (0 if found["ok"] else 1), done.stderr
        assert found["ok"] == all(check["status"] != "wrong" for check in found["checks"])
        return {check["name"]: check for check in found["checks"]}

    def wrong(self, *options: str) -> dict[str, str]:
        """Return the advice on each thing that is wrong."""
        return {name: check["advice"] for name, check in self.look(*options).items() if check["status"] == "wrong"}


@pytest.fixture
def doctor(tmp_path) -> Doctor:
    return Doctor(tmp_path)


def test_it_is_green_before_the_first_start_and_creates_nothing(doctor):
    assert doctor.wrong() == {}
    assert not doctor.place.data.exists()
    assert not doctor.place.config.exists()


def test_it_is_green_with_the_server_running_and_after_it(doctor):
    with doctor.place.served():
        found = doctor.look()
        assert {check["status"] for check in found.values()} <= {"ok"}
        assert "ready" in found["server"]["found"]
        shown = doctor.run("doctor", "--quick")
        assert (shown.returncode, "Nothing is wrong." in shown.stdout) == (0, True)
    found = doctor.look()
    assert [name for name, check in found.items() if check["status"] not in ("ok", "skipped")] == []
    assert "schema" in found["database"]["found"]


def test_settings_that_are_refused_are_named_one_by_one(doctor):
    doctor.place.environment |= {"WAKEFUL_PROT": "1", "WAKEFUL_LEASE_SECONDS": "x"}
    done = doctor.run("doctor")
    assert done.returncode == 1
    assert "WAKEFUL_PROT" in done.stdout
    assert "WAKEFUL_LEASE_SECONDS" in done.stdout
    assert "config check" in done.stdout


def test_a_settings_file_of_0_2_with_calls_as_text_starts_and_is_named(doctor):
    doctor.place.config.mkdir(parents=True, exist_ok=True)
    table = '[models.local]\nprovider = "ollama"\nmodel = "qwen3"\ntool_calls = "text"\n'
    (doctor.place.config / "wakeful.toml").write_text(table)
    alone = doctor.look("--quick")["model local"]
    assert alone["status"] == "warning"
    assert "`tool_calls = text`" in alone["found"]
    assert "`none`" in alone["found"]
    assert "wakeful.toml" in alone["advice"]
    with doctor.place.served():
        assert doctor.look("--quick")["model local"] == doctor.look()["model local"] == alone
        refused = doctor.run("model", "add", "ollama", "x", "--name", "x", "--no-check", "--tool-calls", "text")
        assert (refused.returncode, "strangers" in refused.stderr) == (1, True)


class Provider:
    """A model's endpoint that wants a key, and has a clock of its own."""

    def __init__(self) -> None:
        self.clock_error = timedelta(0)

    @contextmanager
    def served(self, port: int = 0) -> Iterator[str]:
        with ThreadingHTTPServer(("127.0.0.1", port), self._handler()) as server:
            Thread(target=server.serve_forever, daemon=True).start()
            yield f"http://127.0.0.1:{server.server_port}/v1"
            server.shutdown()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        provider = self

        class Handler(BaseHTTPRequestHandler):
            def date_time_string(self, timestamp: float | None = None) -> str:
                return format_datetime(datetime.now(UTC) + provider.clock_error, usegmt=True)

            def do_HEAD(self) -> None:
                self.send_response(404)
                self.end_headers()

            def do_POST(self) -> None:
                asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
                if self.headers["authorization"] != f"Bearer {KEY}":
                    self.send_response(401)
                    self.end_headers()
                    self.wfile.write(b'{"error": {"message": "Incorrect API key provided"}}')
                    return
                self.send_response(200)
                self.send_header("Content-Type", "text/event-stream")
                self.end_headers()
                self.wfile.write(answer(asked))

            def log_message(self, *_: object) -> None:
                pass

        return Handler


def answer(asked: dict[str, Any]) -> bytes:
    """Call the tool that is offered, or say that it is ready."""
    if asked.get("tools"):
        name = asked["tools"][0]["function"]["name"]
        call = {
            "index": 0,
            "id": "c1",
            "type": "function",
            "function": {"name": name, "arguments": '{"word": "ready"}'},
        }
        pieces = [chunk({"tool_calls": [call]}), chunk(finish="tool_calls")]
    else:
        pieces = [chunk({"content": "ready"}), chunk(finish="stop")]
    return b"".join(map(event, pieces)) + b"data: [DONE]\n\n"


@pytest.mark.parametrize("is_running", [True, False])
def test_a_wrong_key(tmp_path, is_running):
    with Provider().served() as url:
        settings = {"WAKEFUL_MODEL": "openai-chat:small", "WAKEFUL_MODEL_BASE_URL": url}
        doctor = Doctor(tmp_path, **settings, WAKEFUL_MODEL_API_KEY="a-wrong-key")
        advice = _look_with(doctor, is_running)
        assert list(advice) == ["model"]
        assert "WAKEFUL_MODEL_API_KEY" in advice["model"]
        doctor.place.environment["WAKEFUL_MODEL_API_KEY"] = KEY
        assert _look_with(doctor, is_running) == {}


def _look_with(doctor: Doctor, is_running: bool) -> dict[str, str]:
    if not is_running:
        return doctor.wrong()
    with doctor.place.served():
        return doctor.wrong()


def test_a_model_that_cannot_be_reached(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    settings = {"WAKEFUL_MODEL": "openai-chat:small", "WAKEFUL_MODEL_BASE_URL": f"http://127.0.0.1:{port}/v1"}
    doctor = Doctor(tmp_path, **settings, WAKEFUL_MODEL_API_KEY=KEY)
    advice = doctor.wrong()
    assert list(advice) == ["model"]
    assert "See that the model's server runs" in advice["model"]
    with Provider().served(port):
        assert doctor.wrong() == {}


def test_a_clock_that_is_off(tmp_path):
    provider = Provider()
    provider.clock_error = timedelta(hours=-2)
    with provider.served() as url:
        settings = {"WAKEFUL_MODEL": "openai-chat:small", "WAKEFUL_MODEL_BASE_URL": url, "WAKEFUL_MODEL_API_KEY": KEY}
        doctor = Doctor(tmp_path, **settings)
        found = doctor.look()
        assert found["clock"]["status"] == "wrong"
        assert re.search(r"clock is 2 h.* ahead of that of 127.0.0.1", found["clock"]["found"])
        assert "NTP" in found["clock"]["advice"]
        provider.clock_error = timedelta(0)  # as if this machine's clock had been set
        assert doctor.wrong() == {}


async def test_a_clock_that_is_not_that_of_postgres(tmp_path, postgres_url):
    database = urlsplit(postgres_url).path.removeprefix("/")
    connection = await asyncpg.connect(postgres_url)
    await connection.execute(
        "CREATE SCHEMA ahead; CREATE FUNCTION ahead.clock_timestamp() RETURNS timestamptz LANGUAGE sql AS"
        " $$ SELECT pg_catalog.clock_timestamp() + interval '10 minutes' $$;"
        f'ALTER DATABASE "{database}" SET search_path = ahead, pg_catalog, public'
    )
    doctor = Doctor(tmp_path, WAKEFUL_DATABASE_URL=postgres_url)
    try:
        found = (await asyncio.to_thread(doctor.look, "--quick"))["clock"]
        assert (found["status"], "behind that of PostgreSQL" in found["found"]) == ("wrong", True)
        assert "NTP" in found["advice"]
    finally:
        await connection.execute(f'ALTER DATABASE "{database}" RESET search_path; DROP SCHEMA ahead CASCADE')
        await connection.close()
    found = (await asyncio.to_thread(doctor.look, "--quick"))["clock"]
    assert (found["status"], "as at PostgreSQL" in found["found"]) == ("ok", True)


def test_a_clock_that_is_before_what_it_has_written(doctor):
    with doctor.place.served():
        pass
    store = doctor.place.data / "wakeful.sqlite"
    tomorrow = datetime.now(UTC).timestamp() + 86_400
    os.utime(store, (tomorrow, tomorrow))
    advice = doctor.wrong()
    assert list(advice) == ["clock"]
    assert "start the server" in advice["clock"]
    with doctor.place.served():
        pass
    assert doctor.wrong() == {}


@pytest.mark.whole
def test_a_full_disk(tmp_path):
    if subprocess.run(["unshare", "-rm", "true"], capture_output=True).returncode != 0:
        pytest.skip("needs user namespaces, for a small disk of its own")
    doctor = Doctor(tmp_path)
    small, large = tmp_path / "small", tmp_path / "large"
    small.mkdir()

    def look(data_dir: Path) -> dict[str, Any]:
        command = f"{Path(sys.executable).with_name('wakeful')} doctor --json"
        fill = f"mount -t tmpfs -o size=2m tmpfs {small} && head -c 5000000 /dev/zero > {small}/filler; exec {command}"
        environment = doctor.place.environment | {"WAKEFUL_DATA_DIR": str(data_dir)}
        done = subprocess.run(
            ["unshare", "-rm", "sh", "-c", fill], env=environment, capture_output=True, text=True, timeout=120
        )
        found = json.loads(done.stdout)
        assert done.returncode == (0 if found["ok"] else 1)
        return {check["name"]: check["advice"] for check in found["checks"] if check["status"] == "wrong"}

    advice = look(small / "data")
    assert set(advice) == {"data directory", "disk"}
    assert "WAKEFUL_DATA_DIR" in advice["disk"]
    assert "writable" not in advice["data directory"]
    assert look(large) == {}


def test_a_data_directory_that_is_read_only(tmp_path):
    with small_disk("100m") as disk:
        doctor = Doctor(tmp_path, WAKEFUL_DATA_DIR=str(disk / "data"))
        with doctor.place.served():
            pass
        subprocess.run(["mount", "-o", "remount,ro", disk], check=True)
        found = doctor.look("--quick")
        assert found["data directory"]["status"] == "wrong"
        assert found["database"]["status"] != "ok"
        assert "damaged" not in f"{found['database']}"
        assert "key" not in f"{found['database']['advice']}"
        subprocess.run(["mount", "-o", "remount,rw", disk], check=True)
        assert doctor.wrong("--quick") == {}


def test_a_store_on_a_disk_that_filled_up_is_not_called_damaged(tmp_path):
    with small_disk("100m") as disk:
        doctor = Doctor(tmp_path, WAKEFUL_DATA_DIR=str(disk / "data"))
        with doctor.place.served():
            pass
        fill(disk / "ballast")
        assert "damaged" not in doctor.wrong("--quick")["database"]
        rotated = doctor.run("key", "rotate")
        assert (rotated.returncode, "is full" in rotated.stderr) == (1, True)
        advice = doctor.wrong("--quick")
        assert "damaged" not in advice["database"]
        assert "`wakeful key rotate`" in advice["database"]
        (disk / "ballast").unlink()
        assert doctor.run("key", "rotate").returncode == 0
        assert doctor.wrong("--quick") == {}


def test_the_model_that_was_chosen_on_the_page_is_named_with_where_to_correct_it(tmp_path):
    with Provider().served() as url:
        doctor = Doctor(tmp_path)
        del doctor.place.environment["WAKEFUL_MODEL"]
        with doctor.place.served():
            made = doctor.run("model", "add", "openai-chat", "small", "--address", url, "--no-check", "--default")
            assert made.returncode == 0, made.stderr
            assert doctor.look("--quick")["model"]["found"] == "small, not asked (--quick)"
            advice = doctor.wrong()["model"]
            assert "`wakeful model edit small`" in advice
            assert "WAKEFUL_MODEL" not in advice
        assert "demo" not in doctor.look("--quick")["model"]["found"]  # only the running server knows it


def test_a_port_that_is_taken(doctor):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        doctor.place.environment["WAKEFUL_PORT"] = str(taken.getsockname()[1])
        advice = doctor.wrong()
        assert list(advice) == ["port"]
        assert f"pid {os.getpid()}" in advice["port"]
        assert "WAKEFUL_PORT" in advice["port"]
        doctor.place.environment["WAKEFUL_PORT"] = "0"
        assert doctor.wrong() == {}


def test_a_device_key_that_is_missing(doctor):
    with doctor.place.served() as running:
        running.stop()
        recovery_key = RECOVERY_KEY.search(running.said)
    assert recovery_key is not None
    (doctor.place.config / "device.key").unlink()
    advice = doctor.wrong()
    assert list(advice) == ["device key"]
    assert "`wakeful key restore`" in advice["device key"]
    (doctor.folder / "written down").write_text(recovery_key[0])
    assert doctor.run("key", "restore", "--file", str(doctor.folder / "written down")).returncode == 0
    assert doctor.wrong() == {}


@pytest.mark.parametrize("options", [(), ("--quick",)])
def test_an_mcp_program_that_is_missing(doctor, options):
    assert doctor.run("mcp", "add", "notes", "--", "no-such-program", "--root", "/srv").returncode == 0
    advice = doctor.wrong(*options)
    assert list(advice) == ["MCP notes"]
    assert "`wakeful mcp rm notes`" in advice["MCP notes"]
    assert doctor.run("mcp", "rm", "notes").returncode == 0
    assert doctor.wrong(*options) == {}


def test_an_old_schema(tmp_path):
    copy_old_data("sqlite", tmp_path)
    doctor = Doctor(tmp_path)
    advice = doctor.wrong()
    assert "`wakeful migrate`" in advice["database"]
    assert doctor.run("migrate").returncode == 0
    assert doctor.wrong() == {}


def test_postgres_is_green_before_and_after_the_first_start(tmp_path, postgres_url):
    doctor = Doctor(tmp_path, WAKEFUL_DATABASE_URL=postgres_url)
    assert re.search(r"PostgreSQL \d+.*, empty", doctor.look("--quick")["database"]["found"])
    with doctor.place.served():
        assert doctor.wrong() == {}
    found = doctor.look("--quick")
    assert re.search(r"PostgreSQL \d+.*, schema \d+", found["database"]["found"])
    assert [name for name, check in found.items() if check["status"] not in ("ok", "skipped")] == []


def test_postgres_that_cannot_be_reached(tmp_path, postgres_url):
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    doctor = Doctor(tmp_path, WAKEFUL_DATABASE_URL=f"postgresql://me:a-secret@127.0.0.1:{port}/wakeful")
    done = doctor.run("doctor", "--quick")
    assert (done.returncode, "a-secret" in done.stdout + done.stderr) == (1, False)
    advice = doctor.wrong("--quick")
    assert list(advice) == ["database"]
    assert "See that it runs" in advice["database"]
    assert "WAKEFUL_DATABASE_URL" in advice["database"]
    doctor.place.environment["WAKEFUL_DATABASE_URL"] = postgres_url
    assert doctor.wrong("--quick") == {}


def test_postgres_with_a_wrong_password(tmp_path, postgres_url):
    user, password = "asks_for_a_password", "the-right-one"
    with asking_for_password(postgres_url, user, password):
        right = re.sub(r"//[^@/]*@", f"//{user}:{password}@", postgres_url)
        doctor = Doctor(tmp_path, WAKEFUL_DATABASE_URL=right.replace(password, "a-wrong-one"))
        found = doctor.look("--quick")["database"]
        assert found["status"] == "wrong"
        assert "refuses the user or the password" in found["found"]
        assert "a-wrong-one" not in found["found"]
        assert "Correct the user and the password in WAKEFUL_DATABASE_URL" in found["advice"]
        doctor.place.environment["WAKEFUL_DATABASE_URL"] = right
        assert doctor.wrong("--quick") == {}


def test_a_postgres_database_that_does_not_exist(tmp_path, postgres_url):
    database = urlsplit(postgres_url).path.removeprefix("/")
    doctor = Doctor(tmp_path, WAKEFUL_DATABASE_URL=postgres_url.replace(f"/{database}", f"/{database}_else"))
    found = doctor.look("--quick")["database"]
    assert f'database "{database}_else" does not exist' in found["found"]
    assert "createdb" in found["advice"]


def test_an_old_schema_in_postgres(tmp_path, postgres_url):
    copy_old_data("postgres", tmp_path, postgres_url)
    doctor = Doctor(tmp_path, WAKEFUL_DATABASE_URL=postgres_url)
    advice = doctor.wrong("--quick")
    assert list(advice) == ["database"]
    assert "`pg_dump`" in advice["database"]
    assert "`wakeful migrate`" in advice["database"]
    assert doctor.run("migrate").returncode == 0
    assert doctor.wrong("--quick") == {}


@contextmanager
def asking_for_password(url: str, user: str, password: str) -> Iterator[None]:
    """Create a user whom the server asks for a password, though it trusts the others."""
    rules = Path(asyncio.run(in_postgres(url, f"CREATE ROLE {user} SUPERUSER LOGIN PASSWORD '{password}'")))
    before = rules.read_text()
    rules.write_text(f"local all {user} scram-sha-256\nhost all {user} all scram-sha-256\n{before}")
    asyncio.run(in_postgres(url, "SELECT pg_reload_conf()"))
    try:
        asyncio.run(until_refused(re.sub(r"//[^@/]*@", f"//{user}:wrong@", url)))
        yield
    finally:
        rules.write_text(before)
        asyncio.run(in_postgres(url, f"SELECT pg_reload_conf(); DROP ROLE {user}"))


async def until_refused(url: str) -> None:
    """Wait until the server has read its rules."""
    async with asyncio.timeout(30):
        while True:
            try:
                connection = await asyncpg.connect(url)
            except asyncpg.InvalidPasswordError:
                return
            await connection.close()


async def in_postgres(url: str, statements: str) -> str:
    """Execute statements, and return the path of the file with the rules for logging in."""
    connection = await asyncpg.connect(url)
    try:
        await connection.execute(statements)
        return await connection.fetchval("SHOW hba_file")
    finally:
        await connection.close()


def test_files_that_others_can_read(doctor):
    with doctor.place.served():
        pass
    (doctor.place.config / "device.key").chmod(0o644)
    advice = doctor.wrong()
    command = re.search(r"`(chmod 600 [^`]+)`", advice["permissions"])
    assert command is not None
    subprocess.run(command[1], shell=True, check=True)
    assert doctor.wrong() == {}


def test_a_server_elsewhere_is_checked_by_what_it_says(doctor, tmp_path):
    with doctor.place.served() as running:
        address = re.search(r"http://\S+", running.said)[0]
        (tmp_path / "elsewhere").mkdir()
        elsewhere = Doctor(tmp_path / "elsewhere")
        token = (doctor.place.config / "token").read_text().strip()
        done = elsewhere.run("--url", address, "--token", token, "doctor")
        assert (done.returncode, "ready" in done.stdout) == (0, True), done.stdout
        refused = elsewhere.run("--url", address, "--token", "wrong", "doctor")
        assert (refused.returncode, "The token is from --token" in refused.stdout) == (1, True)
    gone = elsewhere.run("--url", address, "--token", token, "doctor")
    assert (gone.returncode, "Nothing listens there" in gone.stdout) == (1, True)


def test_it_warns_that_other_apps_under_the_same_host_share_the_login(doctor):
    assert "base path" not in doctor.look("--quick")
    doctor.place.environment["WAKEFUL_BASE_PATH"] = "/wakeful"
    check = doctor.look("--quick")["base path"]
    assert (check["status"], "every other app on that host can act as a logged-in person" in check["found"]) == (
        "warning",
        True,
    )
    assert "a host name of its own" in check["advice"]
