"""A release: one place for the version, a changelog section cut by a script, and an SBOM of what is installed."""

import json
import re
import shutil
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FILES = ("pyproject.toml", "CHANGELOG.md", "README.md")


@pytest.fixture
def release(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "scripts"))
    import release

    return release


@pytest.fixture
def checkout(tmp_path):
    """A copy of the files that a version is written in, with changes that are not released."""
    for name in FILES:
        shutil.copy(ROOT / name, tmp_path)
    changes = tmp_path / "CHANGELOG.md"
    if "## Unreleased" not in changes.read_text():
        changes.write_text(changes.read_text().replace("\n## ", "\n## Unreleased\n\n- A change.\n\n## ", 1))
    return tmp_path


def test_a_cut_names_the_open_section_and_sets_the_version(release, checkout):
    before = (checkout / "CHANGELOG.md").read_text()
    release.cut(checkout, "9.0.0", "2030-01-02")
    after = (checkout / "CHANGELOG.md").read_text()
    assert after == before.replace("## Unreleased\n", "## 9.0.0 – 2030-01-02\n")
    assert release.read_version(checkout) == "9.0.0"


@pytest.mark.parametrize("version", ["0.0.9", "nine", "v9.0.0", "9.0"])
def test_a_version_that_is_not_newer_is_refused(release, checkout, version):
    before = [(checkout / name).read_text() for name in FILES]
    with pytest.raises(release.ReleaseError, match="must be newer"):
        release.cut(checkout, version, "2030-01-02")
    assert [(checkout / name).read_text() for name in FILES] == before


def test_nothing_is_cut_without_changes(release, checkout):
    release.cut(checkout, "9.0.0", "2030-01-02")
    with pytest.raises(release.ReleaseError, match="no section Unreleased"):
        release.cut(checkout, "9.0.1", "2030-01-03")


def test_the_check_names_everything_that_is_forgotten(release, checkout):
    release.cut(checkout, "9.0.0", "2030-01-02")
    problems = "\n".join(release.check(checkout))
    assert "What works today: 9.0" in problems
    assert "tests/data/9.0 is missing" in problems
    readme = checkout / "README.md"
    readme.write_text(re.sub(r"(?m)^(## What works today: ).*$", r"\g<1>9.0", readme.read_text()))
    (checkout / "tests/data/9.0").mkdir(parents=True)  # data that no version starts on any more is deleted
    assert list(release.check(checkout)) == []


def test_the_version_stands_in_one_place():
    version = re.search(r'^version = "(.+)"$', (ROOT / "pyproject.toml").read_text(), re.MULTILINE)
    assert version is not None
    written = [path for path in (ROOT / "src").rglob("*.py") if f'"{version[1]}"' in path.read_text(encoding="utf-8")]
    assert written == []


def test_the_sbom_lists_what_is_installed_and_what_is_in_the_page(release, tmp_path):
    path = sys.modules["release"].write_sbom(ROOT, tmp_path / "sbom.json")  # it validates itself against the schema
    sbom = json.loads(path.read_text(encoding="utf-8"))
    found = {each["purl"].rpartition("@")[0]: each for each in sbom["components"]}
    assert {
        "pkg:pypi/fastapi",
        "pkg:pypi/cryptography",
        "pkg:npm/react-dom",
        "pkg:npm/%40radix-ui/react-dialog",
    } <= set(found)
    assert not {"pkg:pypi/pytest", "pkg:pypi/uv", "pkg:npm/vite"} & set(found)
    assert all(each["hashes"] for each in found.values())
    needs = {each["ref"]: each.get("dependsOn", []) for each in sbom["dependencies"]}
    assert found["pkg:pypi/fastapi"]["purl"] in needs[sbom["metadata"]["component"]["purl"]]
