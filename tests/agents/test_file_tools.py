"""The files toolset on real directories: reads, writes, and no path out of the workspace."""

import asyncio
import os
import socket
import stat
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fixtures.stores import IS_LONG
from harness import tool_context
from wakeful.agents import tools as agents_tools
from wakeful.agents.tools import file_tools
from wakeful.homes.workspace import (
    NoSuchPath,
    NotADirectory,
    NotAFile,
    PathIsLink,
    PathOutside,
    PathUnusable,
    Workspace,
    WorkspaceLimits,
    make_private_directory,
)
from wakeful.toolbox.registry import Tools

SECRET = "the secret outside"


class Hands:
    """An agent's hands: calls tools in its workspace the way the loop does."""

    def __init__(self, workspace: Path, tools: Tools) -> None:
        self.context = tool_context(workspace, "files")
        self.tools = tools

    async def __call__(self, tool, /, **arguments):
        return await self.tools.call(tool, arguments, self.context)

    async def refused(self, tool, /, **arguments):
        """Call a tool that must refuse, and return the code of the refusal."""
        result = await self(tool, **arguments)
        assert not result.success, result.text
        return result.metadata["code"]


@pytest.fixture
def workspace(tmp_path):
    (tmp_path / "secret.txt").write_text(SECRET)
    return tmp_path / "agents" / "one"


@pytest.fixture
def hands(workspace):
    return Hands(workspace, Tools(file_tools(1_000_000)))


@pytest.fixture
def home(workspace):
    """The workspace, already there."""
    workspace.mkdir(parents=True)
    return workspace


def inside(root: Path) -> set[str]:
    return {str(path.relative_to(root)) for path in root.rglob("*")}


# ── Writing and reading ─────────────────────────────────────────────────────────────────────────────────────────────


async def test_what_is_written_is_read_back(hands, workspace):
    written = await hands("write_file", path="notes/today.md", content="Grüße\n")
    assert written.text == "Wrote 'notes/today.md'; it has 8 bytes."
    assert (await hands("read_file", path="notes/today.md")).text == "Grüße\n"
    assert inside(workspace) == {"notes", "notes/today.md"}


async def test_appending_adds_to_the_end_and_makes_a_missing_file(hands, workspace):
    for line in ("one\n", "two\n"):
        assert (await hands("write_file", path="log", content=line, append=True)).success
    assert (workspace / "log").read_text() == "one\ntwo\n"


async def test_additions_at_the_same_time_are_all_kept(hands, workspace):
    await asyncio.gather(*(hands("write_file", path="log", content=f"{n}\n", append=True) for n in range(20)))
    assert sorted((workspace / "log").read_text().split(), key=int) == [str(n) for n in range(20)]


async def test_replacing_a_script_keeps_it_executable(hands, home):
    (home / "run.sh").write_text("old")
    (home / "run.sh").chmod(0o750)
    await hands("write_file", path="run.sh", content="new")
    assert stat.S_IMODE((home / "run.sh").stat().st_mode) == 0o750


async def test_whoever_reads_while_it_is_replaced_sees_the_old_file_or_the_new_one(hands, home):
    (home / "a").write_text("x" * 500_000)
    seen, is_over = set(), threading.Event()

    def watch():
        while not is_over.is_set():
            content = (home / "a").read_text()
            seen.add((content[:1], len(content)))

    watcher = threading.Thread(target=watch)
    watcher.start()
    for letter in "yzyzyz":
        await hands("write_file", path="a", content=letter * 400_000)
    is_over.set()
    watcher.join()
    assert seen <= {("x", 500_000), ("y", 400_000), ("z", 400_000)}


async def test_a_replaced_text_comes_with_a_diff_for_people(hands):
    first = await hands("write_file", path="a.txt", content="one\ntwo\n")
    second = await hands("write_file", path="a.txt", content="one\nthree\n")
    same = await hands("write_file", path="a.txt", content="one\nthree\n")
    added = await hands("write_file", path="a.txt", content="four\n", append=True)
    long = await hands("write_file", path="a.txt", content="x" * (agents_tools.MAX_DIFFED + 1))
    after = await hands("write_file", path="a.txt", content="short")
    assert second.metadata["diff"] == "@@ -1,2 +1,2 @@\n one\n-two\n+three"
    assert [each.metadata.get("diff") for each in (first, same, added, long, after)] == [None] * 5
    assert "diff" not in second.text


async def test_a_write_that_fails_leaves_nothing_behind(hands, home, monkeypatch):
    def no_space(*_, **__):
        raise OSError(28, "No space left on device")

    (home / "a").write_text("old")
    monkeypatch.setattr(os, "rename", no_space)
    assert await hands.refused("write_file", path="a", content="new") == "disk_full"
    assert inside(home) == {"a"}
    assert (home / "a").read_text() == "old"


async def test_a_long_file_is_read_in_stretches_that_lose_no_character(hands, home):
    content = "aé€😀" * 20_000  # characters of one to four bytes, so that a stretch ends within one
    (home / "long").write_text(content)
    read, offset = "", 0
    for _ in range(10):
        result = await hands("read_file", path="long", offset=offset)
        text, _, note = result.text.partition("\n[truncated")
        read += text
        offset = result.metadata["end"]
        if not note:
            break
        assert f"read on with offset={offset}]" in note
    assert read == content


async def test_reading_from_the_middle_of_a_character_begins_with_the_next(hands, home):
    (home / "a").write_text("€uro")
    assert (await hands("read_file", path="a", offset=1)).text == "uro"


async def test_an_answer_is_never_longer_than_its_cap(hands, home):
    (home / "long").write_text("x" * 1_000_000)
    assert len((await hands("read_file", path="long")).text) < agents_tools.MAX_READ + 100


async def test_an_offset_beyond_the_end_is_refused_with_the_size(hands, home):
    (home / "a").write_text("abc")
    result = await hands("read_file", path="a", offset=3)
    assert result.metadata["code"] == "offset_beyond_end"
    assert "3 bytes" in result.text


async def test_an_empty_file_says_that_it_is_empty(hands, home):
    (home / "a").touch()
    assert (await hands("read_file", path="a")).text == "(The file is empty.)"


@pytest.mark.parametrize("data", [b"\x89PNG\r\n\x1a\n\0\0", bytes(range(128, 256)) * 10], ids=["NULs", "no UTF-8"])
async def test_a_binary_file_is_named_as_one(hands, home, data):
    (home / "a").write_bytes(data)
    result = await hands("read_file", path="a")
    assert result.metadata["code"] == "file_is_binary"
    assert f"{len(data):,} bytes" in result.text


async def test_a_text_with_a_few_foreign_bytes_is_still_text(hands, home):
    (home / "latin").write_bytes("Müller, Jürgen".encode("latin-1"))
    assert (await hands("read_file", path="latin")).text == "M�ller, J�rgen"


async def test_a_workspace_that_does_not_exist_answers_like_an_empty_one(hands, workspace):
    assert await hands.refused("read_file", path="a") == "no_such_path"
    assert (await hands("list_files")).text == "'.' is empty."
    assert (await hands("search_files", pattern="x")).text == "No line has 'x' in it."
    assert not workspace.exists()


async def test_content_with_half_a_character_is_refused(hands, workspace):
    assert await hands.refused("write_file", path="a", content="x\ud800") == "content_unusable"
    assert not workspace.exists()


# ── Limits ──────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_write_over_the_quota_changes_nothing(workspace):
    hands = Hands(workspace, Tools(file_tools(100)))
    assert (await hands("write_file", path="a", content="x" * 60)).success
    result = await hands("write_file", path="new/b", content="x" * 41)
    assert result.metadata["code"] == "workspace_full"
    assert "would hold 101 bytes; it may hold 100" in result.text
    assert inside(workspace) == {"a"}


async def test_the_quota_counts_what_a_file_grows_by(workspace):
    hands = Hands(workspace, Tools(file_tools(100)))
    assert (await hands("write_file", path="a", content="x" * 90)).success
    assert (await hands("write_file", path="a", content="y" * 100)).success
    assert await hands.refused("write_file", path="a", content="z", append=True) == "workspace_full"
    assert (workspace / "a").read_text() == "y" * 100


async def test_writes_at_the_same_time_share_one_quota(workspace):
    hands = Hands(workspace, Tools(file_tools(100)))
    results = await asyncio.gather(*(hands("write_file", path=f"f{n}", content="x" * 40) for n in range(8)))
    assert sum(result.success for result in results) == 2


async def test_a_workspace_over_its_quota_can_be_made_smaller(home):
    (home / "a").write_text("x" * 500)
    hands = Hands(home, Tools(file_tools(100)))
    assert (await hands("write_file", path="a", content="x" * 400)).success


async def test_a_file_over_its_cap_is_refused_also_when_it_grows(workspace):
    hands = Hands(workspace, Tools(file_tools(1000, largest_file=50)))
    assert await hands.refused("write_file", path="a", content="x" * 51) == "file_too_large"
    assert (await hands("write_file", path="a", content="x" * 50)).success
    assert await hands.refused("write_file", path="a", content="x", append=True) == "file_too_large"


async def test_the_number_of_files_and_directories_has_an_end(workspace):
    hands = Hands(workspace, Tools(file_tools(1000, most_files=3)))
    assert (await hands("write_file", path="a/b/c", content="x")).success
    assert await hands.refused("write_file", path="d", content="x") == "too_many_files"
    assert (await hands("write_file", path="a/b/c", content="y")).success


# ── No way out ──────────────────────────────────────────────────────────────────────────────────────────────────────

OUTSIDE = ["../../secret.txt", "a/../../../secret.txt", "/etc/passwd", "//etc/passwd", "..", "/", "~/../../secret.txt"]


@pytest.mark.parametrize("path", OUTSIDE)
@pytest.mark.parametrize("tool", ["read_file", "write_file", "list_files", "search_files"])
async def test_a_path_that_leads_out_is_refused(hands, home, tool, path):
    more = {"write_file": {"content": "x"}, "search_files": {"pattern": "x"}}.get(tool, {})
    assert await hands.refused(tool, path=path, **more) == "path_outside_workspace"


@pytest.mark.parametrize("path", ["", "a\0b", "x" * 1001, "a/" * 40 + "b", "\ud800", "n" * 300])
async def test_a_path_that_no_file_can_have_is_refused(hands, home, path):
    assert await hands.refused("write_file", path=path, content="x") == "path_unusable"
    assert inside(home) == set()


@pytest.mark.parametrize("spelling", ["{root}/a", "{root}/./b/../a", "./a", "b/../a", "~/a", "/{root}/a"])
async def test_every_spelling_of_a_path_inside_is_fine(hands, home, spelling):
    (home / "a").write_text("here")
    assert (await hands("read_file", path=spelling.format(root=home))).text == "here"


async def test_an_absolute_path_through_a_linked_data_directory_is_read(tmp_path):
    real = tmp_path / "disk"
    (real / "one" / "workspace").mkdir(parents=True)
    (real / "one" / "workspace" / "a").write_text("here")
    (tmp_path / "agents").symlink_to(real)
    hands = Hands(tmp_path / "agents" / "one" / "workspace", Tools(file_tools(1000)))
    for path in (tmp_path / "agents" / "one" / "workspace" / "a", real / "one" / "workspace" / "a"):
        assert (await hands("read_file", path=str(path))).text == "here"


@pytest.mark.parametrize("linked", ["one", "one/workspace"])
async def test_a_workspace_that_is_a_link_or_in_one_is_not_followed(tmp_path, linked):
    outside, place = tmp_path / "outside", tmp_path / "agents" / linked
    (outside / "workspace").mkdir(parents=True)
    for folder in (outside, outside / "workspace"):
        (folder / "a").write_text(SECRET)
    place.parent.mkdir(parents=True)
    place.symlink_to(outside)
    before = inside(outside)
    hands = Hands(tmp_path / "agents" / "one" / "workspace", Tools(file_tools(1000)))
    assert await hands.refused("read_file", path="a") == "path_is_link"
    assert await hands.refused("list_files") == "path_is_link"
    assert await hands.refused("search_files", pattern="secret") == "path_is_link"
    for path in ("a", "new", "new/b"):
        assert await hands.refused("write_file", path=path, content="x") == "path_is_link"
    with pytest.raises(PathIsLink):
        Workspace(hands.context.workspace).add("uploads/s", "a", b"x")
    Workspace(hands.context.workspace).remove("uploads")
    with pytest.raises(PathIsLink, match="Put the directory itself"):
        make_private_directory(hands.context.workspace)  # as the shell does
    assert inside(outside) == before


async def test_a_sibling_whose_name_begins_alike_is_outside(hands, home):
    other = home.with_name("one-more")
    other.mkdir()
    (other / "a").write_text(SECRET)
    assert await hands.refused("read_file", path=str(other / "a")) == "path_outside_workspace"


@pytest.fixture
def links(home, tmp_path):
    """Links of every sort, each leading out."""
    (home / "file").symlink_to(tmp_path / "secret.txt")
    (home / "directory").symlink_to(tmp_path)
    (home / "dangling").symlink_to(tmp_path / "new.txt")
    (home / "loop").symlink_to("loop")
    (home / "deep").mkdir()
    (home / "deep" / "up").symlink_to("../../..")
    return home


LINKED = ["file", "directory/secret.txt", "dangling", "loop", "deep/up/secret.txt", "directory/new/file"]


@pytest.mark.parametrize("path", LINKED)
async def test_a_link_is_followed_neither_to_read_nor_to_write(hands, links, tmp_path, path):
    before = inside(tmp_path)
    assert await hands.refused("read_file", path=path) == "path_is_link"
    for append in (False, True):
        assert await hands.refused("write_file", path=path, content="x", append=append) == "path_is_link"
    assert inside(tmp_path) == before
    assert (tmp_path / "secret.txt").read_text() == SECRET


async def test_links_are_listed_and_searched_without_being_followed(hands, links):
    listing = (await hands("list_files", recursive=True)).text.splitlines()
    assert "directory (link; cannot be opened)" in listing
    assert not [line for line in listing if "secret" in line]
    assert (await hands("search_files", pattern="secret")).metadata["matches"] == 0
    for path in ("directory", "deep/up"):
        assert await hands.refused("list_files", path=path) == "path_is_link"
        assert await hands.refused("search_files", path=path, pattern="secret") == "path_is_link"


def test_a_directory_exchanged_for_a_link_in_the_middle_of_everything_leads_nowhere(home, tmp_path):
    (tmp_path / "evil").mkdir()
    (tmp_path / "evil" / "a").write_text(SECRET)
    (home / "real").mkdir()
    (home / "real" / "a").write_text("mine")
    (home / "link").symlink_to(tmp_path / "evil")
    (home / "turn").symlink_to(tmp_path / "evil")
    is_over = threading.Event()

    def exchange():
        # The name "turn" is by turns the directory and the link.
        while not is_over.is_set():
            for name in ("real", "link"):
                (home / "turn").rename(home / "aside")
                (home / name).rename(home / "turn")
                (home / "aside").rename(home / ("link" if name == "real" else "real"))

    other = threading.Thread(target=exchange)
    other.start()
    seen = set()
    try:
        for _ in range(3000):
            try:
                seen.add(Workspace(home).read("turn/a", offset=0, limit=100).data)
            except (PathIsLink, NoSuchPath, NotADirectory):
                seen.add(None)
    finally:
        is_over.set()
        other.join()
    assert seen == {b"mine", None}


@pytest.mark.parametrize(
    "make", [os.mkfifo, lambda path: socket.socket(socket.AF_UNIX).bind(path)], ids=["pipe", "socket"]
)
@pytest.mark.filterwarnings("ignore::ResourceWarning")
async def test_a_pipe_or_socket_is_refused_without_waiting_for_it(hands, home, monkeypatch, make):
    monkeypatch.chdir(home)  # a socket's path must be short
    make("odd")
    async with asyncio.timeout(5):
        assert await hands.refused("read_file", path="odd") == "not_a_file"
        assert await hands.refused("write_file", path="odd", content="x") == "not_a_file"
        assert (await hands("search_files", pattern="x")).success
    assert (await hands("list_files")).text == "odd (other; cannot be opened)"


async def test_a_file_exchanged_for_a_pipe_after_the_look_is_refused_without_waiting(hands, home, monkeypatch):
    (home / "a").write_text("x")
    looked = os.stat

    def look_then_exchange(name, **how):
        status = looked(name, **how)
        if name == "a" and stat.S_ISREG(status.st_mode):
            (home / "a").unlink()
            os.mkfifo(home / "a")
        return status

    monkeypatch.setattr(os, "stat", look_then_exchange)
    async with asyncio.timeout(5):
        assert await hands.refused("read_file", path="a") == "not_a_file"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root makes devices")
async def test_a_device_is_refused(hands, home):
    try:
        os.mknod(home / "zero", stat.S_IFCHR | 0o666, os.makedev(1, 5))
    except PermissionError:
        pytest.skip("not even root makes devices here")
    assert await hands.refused("read_file", path="zero") == "not_a_file"


async def test_a_directory_is_not_a_file_and_a_file_is_not_a_directory(hands, home):
    (home / "d").mkdir()
    (home / "f").touch()
    assert await hands.refused("read_file", path="d") == "not_a_file"
    assert await hands.refused("write_file", path="d", content="x") == "not_a_file"
    assert await hands.refused("write_file", path="new/", content="x") == "not_a_file"
    assert await hands.refused("write_file", path="f/x", content="x") == "not_a_directory"
    assert await hands.refused("list_files", path="f") == "not_a_directory"


NAMES = ["..", ".", "", "a", "~", "link", "up", "dangling", "secret.txt", "etc", "passwd", "*", "x" * 256]
ODDITIES = ["/", "\\", "\0", "\n", "%2e%2e", "．．", "\ud800", "\u202e"]
PIECES = st.sampled_from(NAMES + ODDITIES)


@settings(
    max_examples=300 if IS_LONG else 100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(parts=st.lists(PIECES | st.text(max_size=5), max_size=8), is_absolute=st.booleans())
def test_no_path_whatever_reads_or_changes_anything_outside(tmp_path, parts, is_absolute):
    secret, home = tmp_path / "secret.txt", tmp_path / "home"
    if not home.exists():
        secret.write_text(SECRET)
        home.mkdir()
        (home / "link").symlink_to(tmp_path)
        (home / "up").symlink_to("..")
        (home / "dangling").symlink_to(tmp_path / "new")
    path = ("/" if is_absolute else "") + "/".join(parts)
    workspace = Workspace(home)
    limits = WorkspaceLimits(bytes=10**6, file_bytes=10**6, files=10**4)
    refusals = (NoSuchPath, NotADirectory, NotAFile, PathIsLink, PathOutside, PathUnusable)
    with suppress(*refusals):
        workspace.write(path, b"mine", append=False, limits=limits)
        assert workspace.read(path, offset=0, limit=100).data == b"mine"
    with suppress(*refusals):
        assert {entry.size for entry in workspace.entries(path, recursive=True)} <= {0, 4}  # ours are "mine"
    assert {entry.name for entry in tmp_path.iterdir()} == {"secret.txt", "home"}
    assert secret.read_text() == SECRET


# ── Listing and searching ───────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def tree(home):
    (home / "notes").mkdir()
    (home / "notes" / "b.md").write_text("first\nThe Alarm rings\nlast\n")
    (home / "notes" / "c.txt").write_text("alarm clock")
    (home / "a.md").write_text("nothing")
    (home / "picture").write_bytes(b"alarm\0\0")
    return home


async def test_a_listing_has_one_line_for_each_entry_in_order(hands, tree):
    assert (await hands("list_files")).text.splitlines() == ["a.md (7 bytes)", "notes/", "picture (7 bytes)"]


async def test_a_recursive_listing_can_be_narrowed_to_names(hands, tree):
    listing = await hands("list_files", recursive=True, name="*.md")
    assert listing.text.splitlines() == ["a.md (7 bytes)", "notes/b.md (27 bytes)"]
    assert (await hands("list_files", name="*.py")).text == "No name there matches '*.py'."


async def test_a_listing_stops_at_its_cap_and_says_so(hands, home):
    for number in range(agents_tools.MAX_ENTRIES + 1):
        (home / f"{number}").touch()
    listing = await hands("list_files")
    lines = listing.text.splitlines()
    assert len(lines) == agents_tools.MAX_ENTRIES + 1
    assert lines[-1].startswith(f"[truncated after {agents_tools.MAX_ENTRIES} entries")
    assert listing.metadata["is_cut"]


async def test_a_name_with_a_line_break_does_not_look_like_two_entries(hands, home):
    (home / "a\nb").touch()
    (home / os.fsdecode(b"\xff")).touch()
    assert (await hands("list_files")).text.splitlines() == ["'a\\nb' (0 bytes)", "'\\udcff' (0 bytes)"]


async def test_a_search_names_file_line_and_offset_and_passes_over_binaries(hands, tree):
    found = await hands("search_files", pattern="ALARM")
    assert found.text.splitlines() == [
        "notes/b.md:2 (offset=6): The Alarm rings",
        "notes/c.txt:1 (offset=0): alarm clock",
    ]
    assert (await hands("read_file", path="notes/b.md", offset=6)).text.startswith("The Alarm")


@pytest.mark.parametrize(
    ("narrowed", "count"),
    [
        pytest.param({"ignore_case": False}, 1, id="as written"),
        pytest.param({"name": "*.md"}, 1, id="by name"),
        pytest.param({"path": "notes"}, 2, id="in a directory"),
        pytest.param({"path": "notes/b.md"}, 1, id="in a file"),
        pytest.param({"path": "a.md"}, 0, id="where it is not"),
    ],
)
async def test_a_search_can_be_narrowed(hands, tree, narrowed, count):
    assert (await hands("search_files", pattern="alarm", **narrowed)).metadata["matches"] == count


async def test_a_pattern_is_plain_text_and_never_an_expression(hands, home):
    (home / "a").write_text("a" * 5000 + "\n(a+)+$\n")
    async with asyncio.timeout(5):
        found = await hands("search_files", pattern="(a+)+$")
    assert found.text == "a:2 (offset=5001): (a+)+$"


async def test_a_search_stops_at_its_cap_of_matches(hands, home):
    (home / "a").write_text("x\n" * (agents_tools.MAX_MATCHES + 50))
    found = await hands("search_files", pattern="x")
    assert found.metadata == {"matches": agents_tools.MAX_MATCHES, "is_cut": True}
    assert "stopped after 100 matches" in found.text


def test_a_search_stops_when_its_time_is_over(home):
    (home / "a").write_text("no\n" * 10_000 + "yes\n")
    ticks = iter(range(0, 1000, 2))  # each look at the clock is two seconds later
    found = agents_tools.search_workspace(
        Workspace(home), agents_tools.SearchFiles(pattern="yes"), lambda: float(next(ticks))
    )
    assert found.metadata == {"matches": 0, "is_cut": True}
    assert "stopped after 5 seconds" in found.text


async def test_a_match_in_a_very_long_line_is_shown_with_what_is_around_it(hands, home):
    (home / "a").write_text("x" * 100_000 + "needle" + "y" * 100_000)
    text = (await hands("search_files", pattern="needle")).text
    assert "xneedley" in text
    assert len(text) < 400


def test_only_the_tool_that_writes_is_not_repeatable():
    assert [tool.name for tool in file_tools(1) if not tool.is_repeatable] == ["write_file"]


APPENDING = """
import sys
from pathlib import Path
from wakeful.homes.workspace import Workspace, WorkspaceLimits

limits = WorkspaceLimits(bytes=10**6, file_bytes=10**6, files=100)
for number in range(100):
    line = f"{sys.argv[2]}{number}\\n".encode()
    Workspace(Path(sys.argv[1])).write("notes.txt", line, append=True, limits=limits)
"""


def test_two_nodes_on_one_data_directory_append_to_a_file_and_no_line_is_lost(tmp_path):
    root = tmp_path / "workspace"
    nodes = [subprocess.Popen([sys.executable, "-c", APPENDING, str(root), name]) for name in "ab"]
    assert [node.wait(30) for node in nodes] == [0, 0]
    assert len((root / "notes.txt").read_text().splitlines()) == 200


# ── Paths of other nodes ────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("elsewhere", ["/var/lib/wakeful/agents", "/srv/caches/other-2", "/a/../b"])
def test_a_path_of_the_same_workspace_on_another_node_is_found(tmp_path, elsewhere):
    """Transcripts of before homes have absolute paths of uploads."""
    own, other = "01a1ebdd-3b05-7097-93df-c88ec3d83b6f", "01a1ebdd-3b05-7097-93df-c88ec3d83b60"
    root = tmp_path / own / "workspace"
    (root / "uploads").mkdir(parents=True)
    (root / "uploads" / "plan.txt").write_text("the plan")
    workspace = Workspace(root)
    assert workspace.read(f"{elsewhere}/{own}/workspace/uploads/plan.txt", offset=0, limit=100).data == b"the plan"
    for path in (f"{elsewhere}/{other}/workspace/uploads/plan.txt", f"{elsewhere}/{own}/skills/plan.txt"):
        with pytest.raises(PathOutside):
            workspace.read(path, offset=0, limit=100)
    with pytest.raises(PathOutside):
        workspace.read(f"{elsewhere}/{own}/workspace/../../../../etc/passwd", offset=0, limit=100)
