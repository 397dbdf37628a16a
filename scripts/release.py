"""The steps of a release that a program can do; RELEASING.md has all of them.

release.py cut 0.2.0    set the version, and turn the changelog's section Unreleased into that of the version
release.py check        compare version, changelog, README and test data
release.py build        make dist/: wheel, source distribution, SBOM, checksums
"""

import hashlib
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from collections.abc import Iterator
from pathlib import Path

from packaging.version import Version

from sbom import write_sbom
from wakeful.core.clock import SystemClock

ROOT = Path(__file__).parent.parent
UNRELEASED = "## Unreleased\n"
PAGE = "wakeful/http/static/index.html"
MAX_WHEEL = 1_600_000  # bytes; two thirds are our Python sources, a fifth is the page


class ReleaseError(Exception):
    """A step cannot be done; the message says why and what to do."""


def main(arguments: list[str]) -> int:
    """Run one step."""
    try:
        match arguments:
            case ["cut", version]:
                cut(ROOT, version, f"{SystemClock().now():%Y-%m-%d}")
                print(f"Set the version {version}. Next: make setup test, then release.py check.")
            case ["check"]:
                problems = list(check(ROOT))
                print("\n".join(problems) or f"Version {read_version(ROOT)} is consistent.")
                return 1 if problems else 0
            case ["build"]:
                for path in build(ROOT):
                    print(f"{path.relative_to(ROOT)}  {path.stat().st_size:,} bytes")
            case _:
                print(__doc__, file=sys.stderr)
                return 2
    except ReleaseError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


def read_version(root: Path) -> str:
    """Return the version in pyproject.toml, the one place that has it."""
    return str(tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"])


def cut(root: Path, version: str, date: str) -> None:
    """Set the version, and name the changelog's section Unreleased after it."""
    before = read_version(root)
    if re.fullmatch(r"\d+\.\d+\.\d+", version) is None or Version(version) <= Version(before):
        raise ReleaseError(f"The version must be newer than {before} and written like 0.2.0, got {version!r}.")
    changes = root / "CHANGELOG.md"
    text = changes.read_text(encoding="utf-8")
    section = text.partition(UNRELEASED)[2].partition("\n## ")[0].strip()
    if not section:
        raise ReleaseError("CHANGELOG.md has no section Unreleased, or it is empty. Write what has changed first.")
    changes.write_text(text.replace(UNRELEASED, f"## {version} – {date}\n", 1), encoding="utf-8")
    project = root / "pyproject.toml"
    written = project.read_text(encoding="utf-8").replace(f'version = "{before}"', f'version = "{version}"', 1)
    project.write_text(written, encoding="utf-8")


def check(root: Path) -> Iterator[str]:
    """Yield what does not fit the version in pyproject.toml."""
    version = read_version(root)
    minor = ".".join(version.split(".")[:2])
    changes = (root / "CHANGELOG.md").read_text(encoding="utf-8")
    top = re.search(r"^## (.+)$", changes, re.MULTILINE)
    if top is None or not re.fullmatch(rf"{re.escape(version)} – \d{{4}}-\d\d-\d\d", top[1]):
        yield f"CHANGELOG.md begins with {top[1] if top else 'nothing'!r}, not with {version}: release.py cut VERSION"
    if f"\n## What works today: {minor}\n" not in (root / "README.md").read_text(encoding="utf-8"):
        yield f"README.md has no section 'What works today: {minor}'."
    if not (root / "tests/data" / minor).is_dir():
        yield f"tests/data/{minor} is missing: scripts/old_data.py makes it."


def build(root: Path) -> list[Path]:
    """Make everything that is published, into an empty dist/."""
    out = root / "dist"
    shutil.rmtree(out, ignore_errors=True)
    made = subprocess.run([root / ".venv/bin/uv", "build", "--quiet", "--out-dir", out], cwd=root, check=False)
    if made.returncode != 0:
        raise ReleaseError("uv could not build the distributions; it says why above.")
    version = read_version(root)
    wheel, source = out / f"wakeful-{version}-py3-none-any.whl", out / f"wakeful-{version}.tar.gz"
    _check_contents(wheel, source)
    sbom = write_sbom(root, out / f"wakeful-{version}.cdx.json")
    sums = out / "SHA256SUMS"
    lines = [f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in (wheel, source, sbom)]
    sums.write_text("".join(lines), encoding="utf-8")
    return [wheel, source, sbom, sums]


def _check_contents(wheel: Path, source: Path) -> None:
    """Refuse distributions without the page, and a wheel that has grown."""
    with zipfile.ZipFile(wheel) as archive:
        if PAGE not in archive.namelist():
            raise ReleaseError(f"{wheel.name} has no {PAGE}.")
    with tarfile.open(source) as archive:
        if f"{source.name.removesuffix('.tar.gz')}/src/{PAGE}" not in archive.getnames():
            raise ReleaseError(f"{source.name} has no src/{PAGE}.")
    if wheel.stat().st_size > MAX_WHEEL:
        raise ReleaseError(f"{wheel.name} has {wheel.stat().st_size:,} bytes; the limit is {MAX_WHEEL:,}.")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
