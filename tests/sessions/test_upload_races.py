"""Uploads while their session or agent is deleted, and while their folder is replaced by a symbolic link."""

import asyncio
import contextlib
import shutil

import pytest

from fixtures.stores import IS_LONG
from live_server import eventually
from network.raw_requests import code_of

pytestmark = [pytest.mark.security, pytest.mark.both_stores]

ROUNDS = 60 if IS_LONG else 8
FILES = [("files", (f"{number}.txt", b"x" * 20_000)) for number in range(5)]


@pytest.fixture
async def agent(place):
    [agent] = (await place.home.call("GET", "/agents"))["agents"]
    return agent["id"]


@pytest.fixture
async def session(place):
    session = await place.home.session()
    await upload(place.home, session)  # from now on the agent's files are here
    return session


async def upload(server, session, files=FILES):
    return await server.rest.post(f"/sessions/{session}/uploads", files=files)


def uploads_of(server, agent):
    return server.workspaces / agent / "workspace" / "uploads"


async def test_a_file_that_comes_while_its_session_is_deleted_is_kept_nowhere(place, agent, session):
    folder, seen = uploads_of(place.home, agent), set()
    for number in range(ROUNDS):
        raced = await place.home.session()
        sending = asyncio.create_task(upload(place.home, raced))
        await asyncio.sleep(number * 0.002)
        deleted = await place.home.rest.delete(f"/sessions/{raced}")
        seen.add(code_of(await sending))
        assert deleted.status_code == 200
        assert not (folder / raced).exists()
    # On PostgreSQL the row may vanish between our look at it and the new one that refers to it.
    refused = {(404, "no_such_session"), (404, "broken_reference"), (404, "no_such_path")}
    assert seen <= {(201, None)} | refused, seen
    assert [path.name for path in folder.iterdir()] == [session]


async def test_files_end_with_their_session_whichever_node_deletes_it(place, agent, session):
    await place.door.call("DELETE", f"/sessions/{session}")

    async def are_gone():
        return not list(uploads_of(place.home, agent).glob("*"))

    await eventually(are_gone)  # another node gets the news a moment later


async def test_a_deleted_agents_session_takes_no_files(place, agent, session):
    before = sorted(uploads_of(place.home, agent).rglob("*"))
    sending = [asyncio.create_task(upload(place.home, session)) for _ in range(3)]
    await place.home.call("DELETE", f"/agents/{agent}")
    seen = {code_of(await each) for each in sending}
    assert seen <= {(201, None), (404, "no_such_agent")}, seen
    after = sorted(uploads_of(place.home, agent).rglob("*"))
    assert code_of(await upload(place.home, session)) == (404, "no_such_agent")
    assert code_of(await upload(place.door, session)) == (404, "no_such_agent")
    assert sorted(uploads_of(place.home, agent).rglob("*")) == after
    is_shared = place.home.node.store.is_shared
    assert len(after) >= len(before) or is_shared  # there its files are deleted with an agent
    assert not (place.door.workspaces / agent).exists() or not place.is_two


@pytest.mark.parametrize("level", ["uploads", "session"])
async def test_through_a_link_in_the_place_of_the_folder_nothing_is_written_or_removed(
    place, agent, session, tmp_path, level
):
    """The agent's own programs can write there, so they exchange the folder as often as they can."""
    outside = tmp_path / "outside"
    (outside / session).mkdir(parents=True)
    for number in range(5):
        (outside / session / f"{number}.txt").write_text("not yours")
        (outside / f"{number}.txt").write_text("not yours")
    before = {path: path.stat().st_mtime_ns for path in outside.rglob("*")}
    link = uploads_of(place.home, agent) if level == "uploads" else uploads_of(place.home, agent) / session
    aside = link.with_name("aside")
    is_over = False

    async def exchange():
        while not is_over:
            with contextlib.suppress(OSError):
                link.rename(aside)
                link.symlink_to(outside)
            await asyncio.sleep(0.001)
            with contextlib.suppress(OSError):
                link.unlink()
                aside.rename(link)
            await asyncio.sleep(0.001)

    exchanging = asyncio.create_task(exchange())
    answers = [await upload(place.home, session) for _ in range(ROUNDS)]
    raced = await place.home.rest.delete(f"/sessions/{session}")
    is_over = True
    await exchanging
    assert {code_of(each) for each in answers} <= {(201, None), (403, "path_is_link"), (404, "no_such_path")}
    assert raced.status_code == 200
    assert {path: path.stat().st_mtime_ns for path in outside.rglob("*")} == before
    if aside.exists():
        shutil.rmtree(aside)


class Exchanging:
    """Files of which the second comes after the folder of the first has become a link."""

    def __init__(self, link, outside):
        self._link, self._outside = link, outside

    def __iter__(self):
        yield "0.txt", b"mine"
        self._link.rename(self._link.with_name("aside"))
        self._link.symlink_to(self._outside)
        yield "1.txt", b"mine"


async def test_what_is_taken_back_is_not_looked_for_behind_a_link(place, agent, session, tmp_path):
    outside = tmp_path / "outside"
    (outside / session).mkdir(parents=True)
    (outside / session / "0-1.txt").write_text("not yours")
    user = (await place.home.call("GET", "/me"))["user"]["id"]
    files = Exchanging(uploads_of(place.home, agent), outside)
    with pytest.raises(Exception, match="is a link"):
        await place.home.node.services.uploads.keep(session, user, files)
    assert (outside / session / "0-1.txt").read_text() == "not yours"
