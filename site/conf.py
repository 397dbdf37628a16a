"""Settings of the documentation site (`make site`): Sphinx with the theme furo, and nothing loaded from elsewhere.

The pages are Markdown that also reads well in an editor. Their order in the sidebar is the order of docs/index.md.
"""

import posixpath
import re
import tomllib
from pathlib import Path

from sphinx.application import Sphinx

ROOT = Path(__file__).parent.parent

project = "Wakeful"
author = "The Wakeful authors"
release = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]

root_doc = "docs/index"
include_patterns = ["docs/**.md", "README.md", "CONTRIBUTING.md", "CHANGELOG.md", "RELEASING.md"]
exclude_patterns = [".*", "bench", "build", "src", "tests", "web"]  # not walked through
extensions = ["myst_parser"]
source_suffix = {".md": "markdown"}
myst_heading_anchors = 4  # the same anchors as in the repository
suppress_warnings = ["misc.highlighting_failure"]  # a console block with JSON in it is highlighted as far as it goes

html_theme = "furo"
html_title = f"Wakeful {release}"
html_show_sourcelink = False
html_copy_source = False
html_search_scorer = str(ROOT / "site/scorer.js")
html_extra_path = ["index.html"]

_HEADING = re.compile(r"\*\*(.+)\*\*|## (.+)")
_LINK = re.compile(r"\]\(([^)#]+\.md)\)")


def _add_sidebar(_app: Sphinx, page: str, source: list[str]) -> None:
    """Add what Sphinx makes the sidebar from to the front page: its own headings and links."""
    if page != root_doc:
        return
    trees: list[str] = []
    for line in source[0].splitlines():
        heading = _HEADING.fullmatch(line)
        if heading:
            trees.append(f"```{{toctree}}\n:hidden:\n:caption: {heading[1] or heading[2]}\n")
        elif trees:
            trees[-1] += "".join(f"\n{_place(link)}" for link in _LINK.findall(line))
    source[0] += "\n\n" + "\n\n".join(f"{tree}\n```" for tree in trees) + "\n"


def _place(link: str) -> str:
    return posixpath.normpath(f"/docs/{link}").removesuffix(".md")


def setup(app: Sphinx) -> None:
    app.connect("source-read", _add_sidebar)
