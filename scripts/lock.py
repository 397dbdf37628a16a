"""Write requirements.lock, or check that it still matches pyproject.toml.

The first line of the lock is a digest of the dependency tables and of the lines below it. So the check needs no
network, and a new release of a dependency never makes it fail; an edit to either file does.
"""

import hashlib
import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parent.parent
LOCK = ROOT / "requirements.lock"
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
    """Check that the lock is unedited and made from these dependency tables; return the exit code."""
    first, _, body = LOCK.read_text().partition("\n")
    if first != TITLE + digest(body):
        print("requirements.lock does not match pyproject.toml. Run: make lock", file=sys.stderr)
        return 1
    if "://" in body:
        print("requirements.lock contains a URL. Remove it from pyproject.toml, then run: make lock", file=sys.stderr)
        return 1
    return 0


def write(upgrades: list[str]) -> int:
    """Resolve again, keeping every locked version that still fits, except those to upgrade."""
    fresh = ROOT / "requirements.lock.new"
    # uv takes the versions in its output file as preferences, so an unrelated release changes nothing here.
    fresh.write_text(LOCK.read_text() if LOCK.exists() else "")
    options = ["--upgrade"] if upgrades == ["--all"] else [f"--upgrade-package={name}" for name in upgrades]
    command = [UV, "pip", "compile", "pyproject.toml", "--group=dev", "--universal", "--generate-hashes"]
    command += ["--no-header", "--no-annotate", "--quiet", f"--output-file={fresh}", *options]
    try:
        subprocess.run(command, cwd=ROOT, check=True)
        body = fresh.read_text()
    except subprocess.CalledProcessError as error:
        return error.returncode
    finally:
        fresh.unlink(missing_ok=True)
    LOCK.write_text(f"{TITLE}{digest(body)}\n{body}")
    return check()


def digest(body: str) -> str:
    """Hash the dependency tables together with the lock's own lines."""
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
