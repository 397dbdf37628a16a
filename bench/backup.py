"""Backups: bookings while a backup of a gigabyte is made, and the speed of a restore.

Writes bench/out/backup.json and says which of the targets are met. Rounds with and without a backup alternate, and a
restore is compared with decrypting the same file in the same run. Measure on a quiet machine, on a disk.
"""

import http.client
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from itertools import cycle
from pathlib import Path
from random import Random
from statistics import median, quantiles
from typing import Any

import pyrage

from wakeful.backup.age import Identity

OUT = Path(__file__).parent / "out" / "backup.json"
TOKEN = "a-token-for-this-bench"
HEADERS = {"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json"}
WAKEFUL = Path(sys.executable).parent / "wakeful"
MEGABYTES = 1_000
AGENTS = 4
IN_DATABASES = 35  # megabytes of rows for each agent; with the changelog about twice that
ROUNDS = 3
SESSIONS = 200
PER_SECOND = 20  # bookings
ROUND_SECONDS = 12.0
MAX_SLOWDOWN = 2.0
LEAST_SPEED = 0.7

Figures = dict[str, float]


# ── Backup and restore ──────────────────────────────────────────────────────────────────────────────────────────────


@contextmanager
def running(environment: dict[str, str]) -> Generator[int]:
    """Start a server, and yield its port."""
    process = subprocess.Popen(
        [WAKEFUL, "serve", "--port", "0"],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        assert process.stdout is not None
        address = re.search(r"http://127\.0\.0\.1:(\d+)", process.stdout.readline())
        assert address is not None
        yield int(address[1])
    finally:
        process.terminate()
        process.communicate()


def call(connection: http.client.HTTPConnection, method: str, path: str, body: object = None) -> Any:
    connection.request(method, path, None if body is None else json.dumps(body), HEADERS)
    answer = connection.getresponse()
    text = answer.read()
    assert answer.status < 300, text
    return json.loads(text)


def fill(connection: http.client.HTTPConnection, data: Path) -> None:
    """Give agents databases and files, a gigabyte together."""
    random = Random(1)
    row = "".join(random.choices("abcdefghijklmnopqrstuvwxyz ", k=100_000))
    for number in range(AGENTS):
        agent = call(connection, "POST", "/agents", {"name": f"Agent {number}"})["id"]
        for _ in range(IN_DATABASES // 5):
            text = "\n".join(["text", *[row] * 50])
            call(connection, "POST", f"/agents/{agent}/db/import", {"table": "notes", "text": text})
        folder = data / "agents" / agent / "workspace"
        folder.mkdir(parents=True, exist_ok=True)
        for part in range((MEGABYTES // AGENTS - 2 * IN_DATABASES) // 10):
            (folder / f"part-{part}.bin").write_bytes(random.randbytes(10_000_000))


def book(port: int, sessions: Iterator[str], is_over: threading.Event) -> list[float]:
    """Book at a steady rate until it is over; return how long each took in milliseconds, from when it was due."""
    connection = http.client.HTTPConnection("127.0.0.1", port)
    body = {"kind": "message", "message": "Read notes.txt.", "delay_ms": 20_000_000}
    took: list[float] = []
    due = time.perf_counter()
    while not is_over.is_set():
        due += 1 / PER_SECOND
        time.sleep(max(0.0, due - time.perf_counter()))
        call(connection, "POST", f"/sessions/{next(sessions)}/schedules", body)
        took.append((time.perf_counter() - due) * 1000)
    connection.close()
    return took


def measure_round(
    port: int, sessions: Iterator[str], work: "list[str | Path] | None", environment: dict[str, str]
) -> list[float]:
    """Book while a command runs, or for a while."""
    is_over, took = threading.Event(), list[float]()
    booking = threading.Thread(target=lambda: took.extend(book(port, sessions, is_over)))
    booking.start()
    if work is None:
        time.sleep(ROUND_SECONDS)
    else:
        subprocess.run(work, env=environment, check=True, capture_output=True)
    is_over.set()
    booking.join()
    return took


def measure_backup(folder: Path, environment: dict[str, str], recipient: str) -> Figures:
    quiet: list[float] = []
    busy: list[float] = []
    seconds: list[float] = []
    with running(environment) as port:
        connection = http.client.HTTPConnection("127.0.0.1", port)
        fill(connection, folder / "data")
        made = [call(connection, "POST", "/sessions", {"title": f"Measured {n}"})["id"] for n in range(SESSIONS)]
        sessions = cycle(made)  # each may have 50 bookings
        connection.close()
        at = environment | {"WAKEFUL_PORT": str(port)}
        for number in range(ROUNDS):
            quiet += measure_round(port, sessions, None, at)
            began = time.perf_counter()
            file = folder / f"{number}.age"
            busy += measure_round(port, sessions, [WAKEFUL, "backup", file, "--to", recipient], at)
            seconds.append(time.perf_counter() - began)
    without, during = quantiles(quiet, n=100), quantiles(busy, n=100)
    return {
        "file_mb": (folder / "0.age").stat().st_size / 1e6,
        "backup_seconds": median(seconds),
        "bookings_without": len(quiet),
        "bookings_during": len(busy),
        "p50_without_ms": without[49],
        "p50_during_ms": during[49],
        "p99_without_ms": without[98],
        "p99_during_ms": during[98],
    }


def measure_restore(folder: Path, environment: dict[str, str], identity: Identity) -> Figures:
    file, plain = folder / "0.age", folder / "plain.tar"
    (folder / "identity").write_text(identity.text)
    restoring: list[float] = []
    alone: list[float] = []
    for number in range(ROUNDS):
        at = environment | {"WAKEFUL_DATA_DIR": str(folder / f"restored-{number}")}
        began = time.perf_counter()
        command = [WAKEFUL, "restore", file, "--identity", folder / "identity", "--yes"]
        subprocess.run(command, env=at, check=True, capture_output=True)
        restoring.append(time.perf_counter() - began)
        began = time.perf_counter()
        pyrage.decrypt_file(str(file), str(plain), [pyrage.x25519.Identity.from_str(identity.text)])
        os.sync()  # as a restore does
        alone.append(time.perf_counter() - began)
        plain.unlink()
    size = file.stat().st_size / 1e6
    return {"restore_mb_s": size / median(restoring), "age_alone_mb_s": size / median(alone)}


def operate() -> tuple[Figures, list[tuple[str, bool]]]:
    """Return the figures of backup and restore, and which of their targets are met."""
    identity = Identity.new()
    with tempfile.TemporaryDirectory(dir=os.environ.get("WAKEFUL_BENCH_DIR")) as name:
        folder = Path(name)
        environment = {key: value for key, value in os.environ.items() if not key.startswith("WAKEFUL_")} | {
            "WAKEFUL_DATA_DIR": f"{folder}/data",
            "WAKEFUL_CONFIG_DIR": f"{folder}/config",
            "WAKEFUL_TOKEN": TOKEN,
        }
        figures = measure_backup(folder, environment, identity.recipient)
        figures |= measure_restore(folder, environment, identity)
    slower = figures["p99_during_ms"] / figures["p99_without_ms"]
    speed = figures["restore_mb_s"] / figures["age_alone_mb_s"]
    return figures, [
        (f"p99 of bookings during a backup: {slower:.2f} × without (at most {MAX_SLOWDOWN:g})", slower <= MAX_SLOWDOWN),
        (f"speed of a restore: {speed:.2f} × age alone (at least {LEAST_SPEED:g})", speed >= LEAST_SPEED),
    ]


def main() -> None:
    figures, verdicts = operate()
    OUT.parent.mkdir(exist_ok=True)
    OUT.write_text(json.dumps(figures, indent=2) + "\n")
    print(json.dumps(figures, indent=2))
    for text, is_met in verdicts:
        print(f"{'met   ' if is_met else 'MISSED'} {text}")


if __name__ == "__main__":
    main()
