"""The documentation names things that exist, and names all of them."""

import re
from pathlib import Path
from typing import get_args

import pytest

from wakeful.core import types

ROOT = Path(__file__).parents[2]
MAP = ROOT / "CONTRIBUTING.md"
PAGES = [ROOT / "README.md", ROOT / "CHANGELOG.md", MAP, *sorted((ROOT / "docs").rglob("*.md"))]


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


def first_cells(page: Path, heading: str) -> list[str]:
    """Return what stands in backticks in the first column of the table under a heading."""
    section = page.read_text(encoding="utf-8").split(f"\n## {heading}\n")[1].split("\n## ")[0]
    return re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE)


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_lead_somewhere(page):
    targets = re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text(encoding="utf-8"))
    gone = [target for target in targets if "://" not in target and not (page.parent / target).exists()]
    assert not gone


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_to_headings_lead_somewhere(page):
    links = re.findall(r"\]\(([^)#:]*)#([^)]+)\)", page.read_text(encoding="utf-8"))
    gone = [f"{target}#{anchor}" for target, anchor in links if anchor not in anchors(page.parent / target, page)]
    assert not gone


def anchors(target: Path, page: Path) -> set[str]:
    """Return the anchors of a page's headings, as GitHub makes them; a link without a path means its own page."""
    text = (page if target.is_dir() else target).read_text(encoding="utf-8")
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_commands_are_targets_of_the_makefile(page):
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    named = set(re.findall(r"(?:`|\$ )make ([a-z]+)", page.read_text(encoding="utf-8")))
    assert named <= targets


def test_files_that_the_map_names_exist():
    named = set(re.findall(r"`([\w/.]+/[\w.]+\.(?:py|sql|json|md|ts))`", MAP.read_text(encoding="utf-8")))
    places = (ROOT, ROOT / "src/wakeful", ROOT / "tests/support")
    real = {path for path in named if not re.search("NOUN|NNNN|FEATURE", path)}
    assert not {path for path in real if not any((place / path).exists() for place in places)}


def test_the_map_has_every_package_and_no_other():
    _, picture, _ = MAP.read_text(encoding="utf-8").split("\n## The house\n")[1].split("```", 2)
    packages = {path.parent.name for path in (ROOT / "src/wakeful").glob("*/__init__.py")}
    assert set(re.findall(r"\b(\w+)/ ", picture)) == packages


def test_every_promise_names_its_proof():
    section = (ROOT / "README.md").read_text(encoding="utf-8").split("\n## Promises\n")[1].split("\n## ")[0]
    rows = [line for line in section.splitlines() if line.startswith("| ")][1:]
    proofs = [row.rstrip(" |").rpartition("|")[2] for row in rows]
    for proof in proofs:
        files = re.findall(r"`([^`]+)`", proof)
        assert files or re.search(r"comes with part \d", proof), proof
        assert not [file for file in files if not (ROOT / file).exists()], proof


@pytest.mark.parametrize(
    ("heading", "values"),
    [
        ("Kinds of wake", types.WakeKind),
        ("Status of a wake", types.WakeStatus),
        ("Status of a run", types.RunStatus),
        ("Note of a run", types.RunNote),
        ("What happens to a missed wake", types.OnMiss),
    ],
)
def test_the_glossary_has_every_value_and_no_other(heading, values):
    assert first_cells(ROOT / "docs/glossary.md", heading) == list(get_args(values))


def test_every_page_is_linked_from_the_index():
    index = (ROOT / "docs/index.md").read_text(encoding="utf-8")
    pages = [page.relative_to(ROOT / "docs") for page in (ROOT / "docs").rglob("*.md") if page.name != "index.md"]
    assert not [page for page in pages if f"({page})" not in index]
