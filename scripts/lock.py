"""Write the two lock files, or check that they still match pyproject.toml.

requirements.lock has what the server runs with and what installs it; requirements-dev.lock has what the tests and
checks add. The first line of each is a digest of the dependency tables and of the lines below it. So the check needs
no network, and a new release of a dependency never makes it fail; an edit to any of the three files does.
"""

import hashlib
import json
import re
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

ROOT = Path(__file__).parent.parent
RUNTIME = ROOT / "requirements.lock"
DEV = ROOT / "requirements-dev.lock"
UV = ROOT / ".venv/bin/uv"
TITLE = "# Made by `make lock`; sha256 of pyproject's dependency tables and the lines below: "


def main() -> int:
    """Run `lock.py write [PACKAGE | --all]` or `lock.py check`."""
    match sys.argv[1:]:
        case ["check"]:
            return check()
        case ["write", *upgrades]:
            return write(upgrades)
        case _:
            print("usage: lock.py check | write [--all | PACKAGE...]", file=sys.stderr)
            return 2


def check() -> int:
    """Check that the locks are unedited and made from these dependency tables; return the exit code."""
    for lock in (RUNTIME, DEV):
        first, _, body = lock.read_text().partition("\n")
        if first != TITLE + digest(body):
            print(f"{lock.name} does not match pyproject.toml. Run: make lock", file=sys.stderr)
            return 1
        if "://" in body:
            print(f"{lock.name} contains a URL. Remove it from pyproject.toml, then run: make lock", file=sys.stderr)
            return 1
    return 0


def write(upgrades: list[str]) -> int:
    """Resolve again, keeping every locked version that still fits, except those to upgrade."""
    options = ["--upgrade"] if upgrades == ["--all"] else [f"--upgrade-package={name}" for name in upgrades]
    known = "\n".join(lock.read_text() for lock in (RUNTIME, DEV) if lock.exists())
    try:
        everything = compile_lock(known, ["--group=dev", "--group=build", "--all-extras", *options])
        # The versions of the first resolution fit here too, so the two locks never disagree about one.
        runtime = compile_lock(everything, ["--group=build"])
    except subprocess.CalledProcessError as error:
        return error.returncode
    added = "".join(block for block in blocks(everything) if block not in set(blocks(runtime)))
    for lock, body in ((RUNTIME, runtime), (DEV, added)):
        lock.write_text(f"{TITLE}{digest(body)}\n{body}")
    return check()


def compile_lock(preferred: str, options: list[str]) -> str:
    """Return the lines of a lock; versions in `preferred` are kept where they fit."""
    command = [UV, "pip", "compile", "pyproject.toml", "--universal", "--generate-hashes", "--no-header"]
    with tempfile.TemporaryDirectory() as folder:
        # uv takes the versions in its output file as preferences, so an unrelated release changes nothing here.
        fresh = Path(folder) / "requirements.lock"
        fresh.write_text(preferred)
        subprocess.run(
            [*command, "--no-annotate", "--quiet", f"--output-file={fresh}", *options],
            cwd=ROOT,
            check=True,
        )
        return fresh.read_text()


def blocks(body: str) -> list[str]:
    """Split a lock into its packages, each with its hashes."""
    return re.findall(r"^\S.*\n(?:[ \t].*\n)*", body, re.MULTILINE)


def digest(body: str) -> str:
    """Hash the dependency tables together with a lock's own lines."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    tables = {
        "requires-python": project["project"]["requires-python"],
        "dependencies": project["project"]["dependencies"],
        "optional-dependencies": project["project"].get("optional-dependencies", {}),
        "dependency-groups": project["dependency-groups"],
        "build-system": project["build-system"],
    }
    text = json.dumps(tables, sort_keys=True) + "\n" + re.sub(r"\r\n?", "\n", body)
    return hashlib.sha256(text.encode()).hexdigest()


if __name__ == "__main__":
    sys.exit(main())
