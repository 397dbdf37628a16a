"""The code blocks of the documentation, and how they are marked.

A block runs as it is written, unless the line above it is `<!-- not run: REASON -->`. A block marked
`<!-- run: when the server has stopped -->` runs last, one marked `<!-- run: when a crash has interrupted a run -->`
with a server of its own.
"""

import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
SHELLS = ("bash", "console")
REASONS = {"needs the internet", "needs root", "needs a terminal", "needs a keyring", "is an excerpt", "runs the tests"}
STOPPED = "when the server has stopped"
CRASHED = "when a crash has interrupted a run"

_BLOCK = re.compile(r"(?:^<!-- (not run|run): (.+?) -->\n)?^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_VARYING = {
    "rest": ".*",
    "id": r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}",
    "time": r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(?:\.\d+)?",
    "clock": r"(?:today|tomorrow) \d\d:\d\d",
    "gap": r" {2,}",
}
_PARTS = re.compile(
    "|".join((*(f"(?P<{kind}>{form})" for kind, form in _VARYING.items() if kind != "rest"), "(?P<rest>…)", "."))
)
_SERVES = re.compile(r"\b(make|wakeful) serve\b")


@dataclass(frozen=True, kw_only=True)
class Block:
    """One block of a page."""

    page: str
    line: int
    language: str
    text: str
    is_run: bool
    mark: str  # why it is not run, or when it is

    @property
    def starts_server(self) -> bool:
        return self.language == "console" and _SERVES.search(self.text.partition("\n")[0]) is not None

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"


def all_blocks() -> list[Block]:
    return [block for page in PAGES for block in blocks_of(page)]


def blocks_of(page: Path) -> list[Block]:
    """Return the blocks of a page, in order."""
    text = page.read_text(encoding="utf-8")
    return [
        Block(
            page=str(page.relative_to(ROOT)),
            line=text.count("\n", 0, found.start(3)) + 1,
            language=found[3],
            text=found[4],
            is_run=found[1] != "not run",
            mark=found[2] or "",
        )
        for found in _BLOCK.finditer(text)
    ]


def split_console(text: str) -> tuple[str, list[str]]:
    """Return the commands of a console block, which begin with `$ `, and the lines that they print."""
    steps = steps_of(text)
    return "\n".join(command for command, _ in steps), [line for _, shown in steps for line in shown]


def steps_of(text: str) -> list[tuple[str, list[str]]]:
    """Return the commands of a console block, each with the lines that it prints."""
    steps: list[tuple[str, list[str]]] = []
    is_open = False
    for line in text.splitlines():
        if is_open:
            steps[-1] = (f"{steps[-1][0]}\n{line}", [])
        elif line.startswith("$ "):
            steps.append((line.removeprefix("$ "), []))
        else:
            steps[-1][1].append(line)
            continue
        is_open = steps[-1][0].endswith("\\") or not is_bash(steps[-1][0])
    return steps


def to_pattern(line: str) -> str:
    """Return the pattern of a printed line: `…` is anything, ids and times differ, columns have other widths."""
    return "".join(_VARYING.get(part.lastgroup or "", "") or re.escape(part[0]) for part in _PARTS.finditer(line))


def is_bash(text: str) -> bool:
    """Return whether a text is complete and correct for bash."""
    return subprocess.run(["bash", "-n", "-c", text], capture_output=True, check=False).returncode == 0
