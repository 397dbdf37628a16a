"""Huey on SQLite, synced: how many queued no-op tasks a second it runs. Run by peers.py in a venv of its own."""

import json
import sys
import threading
import time
from pathlib import Path

from huey import SqliteHuey

TEXT = "Read notes.txt with read_file and write what changed to report.md. " * 3


def fires(folder: Path, count: int, workers: int) -> float:
    queue = SqliteHuey(filename=str(folder / "huey.sqlite"), fsync=True)
    done, is_over = [], threading.Event()

    @queue.task()
    def nothing(_text: str) -> None:
        done.append(1)
        if len(done) == count:
            is_over.set()

    for _ in range(count):
        nothing(TEXT)
    consumer = queue.create_consumer(workers=workers, initial_delay=0.001, max_delay=0.01, check_worker_health=False)
    began = time.perf_counter()
    consumer.start()
    assert is_over.wait(120)
    spent = time.perf_counter() - began
    consumer.stop()
    return count / spent


if __name__ == "__main__":
    folder, count, workers = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    print(json.dumps({"fires_per_s": round(fires(folder, count, workers))}))
