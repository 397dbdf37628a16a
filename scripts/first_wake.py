"""Time from the install line in a fresh clone to an agent that woke by itself.

    first_wake.py uvx     `uvx --from . wakeful serve`
    first_wake.py pip     `pip install .` into a new environment, then `wakeful serve`
    first_wake.py make    `make serve`

Clones this checkout as committed into a temporary directory, with an empty home directory and the download caches of
uv and npm. The demo model gets the message to look again in ten seconds; the time ends when the run that it booked
has succeeded. Run it twice: the first run may download.
"""

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

ROOT = Path(__file__).parent.parent
UV = ROOT / ".venv/bin/uv"
LINES = {
    "uvx": f"{UV} tool run --from . wakeful serve",
    "pip": f"{sys.executable} -m venv new && new/bin/python -m pip install -q . && new/bin/wakeful serve",
    "make": "make serve",
}
MESSAGE = "In 10 seconds check notes.txt."
PATIENCE = 600.0  # seconds


def main(way: str) -> int:
    """Measure one way to install, and print the steps."""
    with tempfile.TemporaryDirectory(prefix="wakeful-first-") as folder:
        clone, home = Path(folder) / "wakeful", Path(folder) / "home"
        home.mkdir()
        subprocess.run(["git", "clone", "--quiet", "--no-hardlinks", ROOT, clone], check=True)
        began = time.monotonic()
        process = subprocess.Popen(
            ["bash", "-c", LINES[way]],
            cwd=clone,
            env=environment(home),
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        try:
            address = wait_for_address(process)
            print(f"{way}: the server answers after {time.monotonic() - began:.1f} s", flush=True)
            wait_for_wake(address, (home / ".config/wakeful/token").read_text().strip())
            print(f"{way}: an agent woke by itself after {time.monotonic() - began:.1f} s", flush=True)
        finally:
            os.killpg(process.pid, signal.SIGTERM)
            process.communicate()
    return 0


def environment(home: Path) -> dict[str, str]:
    """Return an environment with a new home, but the caches of the real one."""
    real = Path.home()
    plain = {key: value for key, value in os.environ.items() if not key.startswith(("WAKEFUL_", "XDG_", "VIRTUAL_"))}
    caches = {
        "UV_CACHE_DIR": str(real / ".cache/uv"),
        "PIP_CACHE_DIR": str(real / ".cache/pip"),
        "npm_config_cache": str(real / ".npm"),
    }
    return plain | caches | {"HOME": str(home), "WAKEFUL_PORT": "0"}


def wait_for_address(process: "subprocess.Popen[str]") -> str:
    """Return the address that the server prints."""
    assert process.stdout is not None
    for line in process.stdout:
        found = re.search(r"Wakeful \S+ on (http://\S+)", line)
        if found:
            return found[1]
    raise SystemExit("the server did not start")


def wait_for_wake(address: str, token: str) -> None:
    """Let the agent book a wake of its own, and wait until its run has succeeded."""
    session = ask(address, token, "POST", "/sessions")["id"]
    body = {"call_type": "immediate", "additional_context_message": MESSAGE}
    ask(address, token, "POST", f"/sessions/{session}/recall", body)
    began = time.monotonic()
    while time.monotonic() - began < PATIENCE:
        runs = ask(address, token, "GET", "/runs")["runs"]
        if len([run for run in runs if run["status"] == "success"]) >= 2:
            return
        time.sleep(0.1)
    raise SystemExit("the agent did not wake")


def ask(address: str, token: str, method: str, path: str, body: object = None) -> Any:
    """Send a request and return the answer."""
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    data = None if body is None else json.dumps(body).encode()
    with urlopen(Request(address + path, method=method, data=data, headers=headers), timeout=60) as answer:
        return json.load(answer)


if __name__ == "__main__":
    if len(sys.argv) != 2 or sys.argv[1] not in LINES:
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1]))
