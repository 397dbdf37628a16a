"""The documentation site: builds without warnings, loads nothing from elsewhere, and its search finds pages."""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import sync_playwright

from browser.visits import find_chromium

pytestmark = pytest.mark.whole

ROOT = Path(__file__).parents[2]
# Addresses that a browser would load by itself; a link is one that a person follows.
LOADED = re.compile(r'<(?:script|img|iframe|link(?![^>]*rel="(?:canonical|next|prev)))[^>]*?(?:src|href)="(https?:)?//')
STYLED = re.compile(r"""(url\(|@import)\s*['"]?(https?:)?//""")
# What people search for, and the page of docs/ that answers it.
QUESTIONS = {
    "install without clone": "how-to/install-without-a-clone",
    "where is my data": "how-to/where-is-my-data",
    "uninstall": "how-to/where-is-my-data",
    "rotate token": "how-to/rotate-the-owners-token",
    "add a colleague": "how-to/add-a-colleague",
    "costs": "how-to/costs",
    "bill": "how-to/costs",
    "telemetry": "how-to/privacy",
    "privacy": "how-to/privacy",
    "macos": "how-to/macos-and-windows",
    "windows": "how-to/macos-and-windows",
    "ollama": "how-to/local-and-cloud-models",
    "lm studio": "how-to/local-and-cloud-models",
    "vllm": "how-to/local-and-cloud-models",
    "openrouter": "how-to/local-and-cloud-models",
    "azure": "how-to/local-and-cloud-models",
    "bedrock": "how-to/local-and-cloud-models",
    "model for each agent": "how-to/a-model-for-each-agent",
    "two endpoints": "how-to/a-model-for-each-agent",
    "mcp filesystem": "how-to/mcp-filesystem-and-github",
    "mcp github": "how-to/mcp-filesystem-and-github",
    "call from my program": "how-to/call-it-from-my-program",
    "curl": "how-to/call-it-from-my-program",
    "troubleshooting": "how-to/troubleshooting",
    "faq": "how-to/faq",
    "journal": "tutorials/journal",
    "watch a page": "tutorials/watch-a-page",
    "folder local model": "tutorials/folder",
}
FIRST_HITS = 3
# Sphinx's own search, without the drawing of its results: pages by score, the best first.
SEARCH = """queries => queries.map(query => {
  const results = Search._performSearch(...Search._parseQuery(query)).reverse()
  return [...new Set(results.map(result => result[0]))]
})"""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-c", "site", "-d", out / "trees", ".", out]
    built = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr
    return out


def test_nothing_is_loaded_from_elsewhere(site: Path) -> None:
    pages = [*site.rglob("*.html")]
    assert len(pages) > 30
    assert [page.name for page in pages if LOADED.search(page.read_text(encoding="utf-8"))] == []
    styles = [*site.rglob("*.css")]
    assert [style.name for style in styles if STYLED.search(style.read_text(encoding="utf-8"))] == []


def test_every_page_of_the_documentation_is_in_the_sidebar(site: Path) -> None:
    front = (site / "docs" / "index.html").read_text(encoding="utf-8")
    sidebar = set(re.findall(r'class="reference internal" href="([^"#]+)"', front.partition("sidebar-tree")[2]))
    pages = {str(page.relative_to(ROOT / "docs").with_suffix(".html")) for page in (ROOT / "docs").rglob("*.md")}
    assert pages - {"index.html"} <= sidebar


def load_index(site: Path) -> dict[str, Any]:
    text = (site / "searchindex.js").read_text(encoding="utf-8")
    return json.loads(text.removeprefix("Search.setIndex(").removesuffix(")"))


def test_the_search_index_has_the_words_of_the_pages(site: Path) -> None:
    index = load_index(site)
    found = index["terms"]["midnight"]
    names = [index["docnames"][number] for number in (found if isinstance(found, list) else [found])]
    assert "docs/reference/times" in names


def test_the_search_of_the_site_answers_what_people_ask(site: Path) -> None:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find_chromium(), chromium_sandbox=False)
        page = browser.new_page()
        page.goto((site / "search.html").as_uri())
        page.wait_for_function("Search._index !== null")
        found: list[list[str]] = page.evaluate(SEARCH, list(QUESTIONS))
        browser.close()
    hits = dict(zip(QUESTIONS, found, strict=True))
    missed = {
        query: hits[query][:6] for query, page in QUESTIONS.items() if f"docs/{page}" not in hits[query][:FIRST_HITS]
    }
    assert missed == {}
