"""Start time of commands and of a server: `wakeful wake ls`, `wakeful --help`, and `wakeful serve`.

Writes bench/out/start.json and says which of the targets are met. Each figure is the median of several, also as a ratio
to Python alone and to Python that imports fastapi and uvicorn, which says more on a machine that has other work.
"""

import json
import os
import re
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path

OUT = Path(__file__).parent / "out" / "start.json"
WAKEFUL = Path(sys.executable).with_name("wakeful")
ROUNDS = 7
TARGETS = {"wake_ls_ms": 250.0, "help_ms": 250.0, "healthz_ms": 1_500.0}
PATIENCE = 60.0  # seconds


def take_time(act: Callable[[], object]) -> float:
    """Return the median of several times, in milliseconds."""
    taken: list[float] = []
    for _ in range(ROUNDS):
        began = time.perf_counter()
        act()
        taken.append((time.perf_counter() - began) * 1000)
    return statistics.median(taken)


def run(*command: str | Path, env: dict[str, str] | None = None) -> None:
    subprocess.run(command, check=True, env=env, stdout=subprocess.DEVNULL)


def environment(folder: Path, port: int) -> dict[str, str]:
    plain = {key: value for key, value in os.environ.items() if not key.startswith("WAKEFUL_")}
    places = {"WAKEFUL_DATA_DIR": str(folder / "data"), "WAKEFUL_CONFIG_DIR": str(folder / "config")}
    return plain | places | {"WAKEFUL_PORT": str(port), "WAKEFUL_LOG_LEVEL": "error"}


def find_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        return free.getsockname()[1]


@contextmanager
def serving(env: dict[str, str]) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen([WAKEFUL, "serve"], env=env, stdout=subprocess.PIPE, text=True)
    try:
        yield process
    finally:
        process.terminate()
        process.communicate()


def measure_start(env: dict[str, str]) -> tuple[float, float]:
    """Start a server, and return after how many milliseconds it is alive and has printed its address."""
    began = time.perf_counter()
    with serving(env) as process:
        while not is_alive(int(env["WAKEFUL_PORT"])):
            assert time.perf_counter() - began < PATIENCE
            time.sleep(0.005)
        alive = time.perf_counter() - began
        assert process.stdout is not None
        assert re.search(r"http://", process.stdout.readline())
        return alive * 1000, (time.perf_counter() - began) * 1000


def is_alive(port: int) -> bool:
    connection = HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    try:
        connection.request("GET", "/healthz")
        return connection.getresponse().status == 200
    except ConnectionError:
        return False
    finally:
        connection.close()


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        env = environment(Path(folder), find_port())
        measure_start(env)  # the first start makes the store
        starts = [measure_start(env) for _ in range(ROUNDS)]
        with serving(env) as server:
            assert server.stdout is not None
            server.stdout.readline()
            wake_ls = take_time(lambda: run(WAKEFUL, "wake", "ls", env=env))
        python = take_time(lambda: run(sys.executable, "-c", "pass"))
        frameworks = take_time(lambda: run(sys.executable, "-c", "import fastapi, uvicorn"))
        figures = {
            "python_ms": python,
            "fastapi_and_uvicorn_ms": frameworks,
            "help_ms": take_time(lambda: run(WAKEFUL, "--help", env=env)),
            "wake_ls_ms": wake_ls,
            "healthz_ms": statistics.median(alive for alive, _ in starts),
            "ready_ms": statistics.median(ready for _, ready in starts),
        }
    OUT.parent.mkdir(exist_ok=True)
    OUT.write_text(json.dumps(figures, indent=2) + "\n")
    for key, value in figures.items():
        target = TARGETS.get(key)
        verdict = "      " if target is None else "met   " if value <= target else "MISSED"
        limit = "" if target is None else f" (at most {target:.0f})"
        ratios = f"{value / python:.1f} × python, {value / frameworks:.2f} × fastapi and uvicorn"
        print(f"{verdict} {key.removesuffix('_ms').replace('_', ' ')}: {value:.0f} ms{limit}, {ratios}")


if __name__ == "__main__":
    main()
