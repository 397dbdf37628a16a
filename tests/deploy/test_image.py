"""The image is built from the Dockerfile as it is, and runs as a stranger on a read-only root."""

import os
import re
import shutil
import socket
import subprocess
import time
from pathlib import Path

import httpx
import pytest

from fixtures.stores import IS_LONG
from image.container import ROOT, Container, Image, missing_tools

MAX_BYTES = 250_000_000
STRANGER = 54321  # no user of the image
ALLOWED = {"WAKEFUL_ALLOWED_HOSTS": "localhost", "WAKEFUL_PUBLIC_URL": "http://localhost:8420"}

pytestmark = [
    pytest.mark.image,
    pytest.mark.skipif(not IS_LONG, reason="builds an image, which takes minutes: WAKEFUL_TEST_LONG=1"),
    pytest.mark.skipif(bool(missing_tools()), reason=f"needs {', '.join(missing_tools())}"),
]


@pytest.fixture(scope="module")
def image(tmp_path_factory):
    """The image, from a folder that a run before has filled if WAKEFUL_TEST_IMAGE names it."""
    given = os.environ.get("WAKEFUL_TEST_IMAGE")
    folder = Path(given) if given else tmp_path_factory.mktemp("image")
    if not (folder / "image.json").exists():
        subprocess.run([ROOT / "scripts/try_image.sh", folder], check=True)
    yield Image(folder)
    if not given:
        shutil.rmtree(folder)


@pytest.fixture
def container(image, tmp_path):
    return Container(image, tmp_path, uid=STRANGER, settings=ALLOWED)


def wait_until(is_true, container, seconds=60):
    end = time.monotonic() + seconds
    while not is_true():
        assert time.monotonic() < end, container.said()
        assert container.is_running, container.said()
        time.sleep(0.1)


def is_ready(container):
    try:
        return httpx.get(f"http://127.0.0.1:{container.health_port}/readyz", timeout=5).status_code == 200
    except httpx.TransportError:
        return False


def client_of(container, folder):
    token = (folder / "config/token").read_text().strip()
    headers = {"Authorization": f"Bearer {token}", "Host": "localhost:8420"}  # as after `-p 8420:…`
    return httpx.Client(base_url=f"http://127.0.0.1:{container.port}", headers=headers, timeout=30)


def test_it_is_small_and_has_no_build_tools(image):
    sizes = [path.lstat().st_size for path in image.files.rglob("*") if path.is_file() and not path.is_symlink()]
    assert sum(sizes) <= MAX_BYTES
    programs = {path.name for path in (image.files / "opt/wakeful/bin").iterdir()}
    assert "wakeful" in programs
    assert not programs & {"pip", "pip3", "uv", "hatchling", "node", "npm"}
    assert list((image.files / "opt/wakeful").rglob("static/index.html"))


def test_its_user_is_not_root_and_owns_nothing_but_the_volumes(image):
    assert image.config["User"] == "10001:0"
    assert set(image.config["Volumes"]) == {"/data", "/config"}
    writable = [path for path in image.files.rglob("*") if path.lstat().st_uid == 10001]
    assert {path.name for path in writable} == {"data", "config"}


def test_a_stranger_runs_it_on_a_read_only_root(container, tmp_path):
    with container.running() as process:
        wait_until(lambda: "server starting" in container.said(), container)
        assert container.check_health().returncode == 1
        wait_until(lambda: is_ready(container), container)
        healthy = container.check_health()
        assert healthy.returncode == 0, healthy.stderr
        assert container.execute("touch", "/opt/wakeful/x").returncode != 0
        assert container.execute("id", "-u").stdout.strip() == str(STRANGER)
        with client_of(container, tmp_path) as owner:
            assert owner.get("/me").json()["user"]["name"] == "Owner"
            assert "<title>" in owner.get("/").text
        login = container.execute("wakeful", "login")
        assert "http://localhost:8420/login?code=" in login.stdout, login.stderr
        doctor = container.execute("wakeful", "doctor", "--quick")
        assert doctor.returncode == 0, doctor.stdout
        container.signal("TERM")
        assert process.wait(30) == 0, container.said()
    assert "server stopped" in container.said()


def test_the_health_check_is_red_while_the_server_hangs(container):
    with container.running():
        wait_until(lambda: is_ready(container), container)
        child = 'read pid rest < /proc/1/task/1/children; kill "-$0" "$pid"'  # the server, started by tini
        assert container.execute("sh", "-c", child, "STOP").returncode == 0
        hanging = container.check_health()
        assert (hanging.returncode, "does not answer" in hanging.stderr) == (1, True)
        assert container.execute("sh", "-c", child, "CONT").returncode == 0
        wait_until(lambda: container.check_health().returncode == 0, container)


def test_without_allowed_hosts_it_says_what_to_set(image, tmp_path):
    container = Container(image, tmp_path, uid=STRANGER, settings={})
    with container.running() as process:
        assert process.wait(60) == 1
    assert "WAKEFUL_ALLOWED_HOSTS=" in container.said()
    assert "Traceback" not in container.said()


def test_a_run_that_sigterm_interrupts_goes_on_after_the_start(image, tmp_path):
    settings = ALLOWED | {"WAKEFUL_FETCH_PRIVATE_HOSTS": "127.0.0.1"}
    container = Container(image, tmp_path, uid=STRANGER, settings=settings)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        silent.settimeout(60)
        with container.running() as process:
            wait_until(lambda: is_ready(container), container)
            with client_of(container, tmp_path) as owner:
                session = owner.post("/sessions", json={}).json()["id"]
                text = f"fetch http://127.0.0.1:{silent.getsockname()[1]}/"
                run = owner.post(f"/sessions/{session}/messages", json={"content": text}).json()["run_id"]
            held, _ = silent.accept()  # it is in the middle of a tool call
            began = time.monotonic()
            container.signal("TERM")
            assert process.wait(30) == 0, container.said()
            assert time.monotonic() - began < 10  # the time that `docker stop` gives it
        held.close()
        with container.running():
            wait_until(lambda: is_ready(container), container)
            held, _ = silent.accept()  # the call is made again
            held.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 5\r\n\r\nspoke")
            with client_of(container, tmp_path) as owner:
                wait_until(lambda: owner.get(f"/runs/{run}").json()["status"] == "success", container)
            held.close()


def test_sigterm_ends_it_while_it_starts(container):
    with container.running() as process:
        wait_until(lambda: "server starting" in container.said(), container)
        container.signal("TERM")
        assert process.wait(10) is not None


def test_the_packages_of_the_lock_are_in_it(image):
    [site] = (image.files / "opt/wakeful/lib").glob("python3.*/site-packages")
    installed = {re.sub(r"[-_.]+", "-", path.name.split("-")[0]).lower() for path in site.glob("*.dist-info")}
    lock = re.findall(r"^([\w.-]+)==", (ROOT / "requirements.lock").read_text(), re.MULTILINE)
    assert installed - {"wakeful"} <= set(lock)
    assert {"fastapi", "asyncpg", "cryptography"} <= installed
