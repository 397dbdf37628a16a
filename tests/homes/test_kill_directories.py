"""Real processes on PostgreSQL with separate data directories: the one that runs an agent is killed."""

import pytest

from crash.crash_harness import CrashHarness, book_one, check_everything_happened_once, kill
from harness import Harness
from wakeful.database.files import By

pytestmark = pytest.mark.crash


@pytest.fixture
def crash(tmp_path, postgres_url):
    crash = CrashHarness(tmp_path, postgres_url)
    yield crash
    crash.clean_up()


async def book_with_memory(harness: Harness) -> None:
    """Book a wake of an agent that has a database and a file."""
    node, agent = harness.node, harness.agent
    await node.services.data.run(By(agent=agent), "import", table="tasks", text="title\na\n", format="csv")
    await node.services.instructions.save(agent.id, harness.user.id, "AGENTS.md", "Be kind.")
    await book_one(harness)


async def read_memory(harness: Harness) -> tuple[list[list[str]], list[str]]:
    node, agent = harness.node, harness.agent
    found = await node.services.data.run(By(agent=agent), "query", sql="SELECT title FROM tasks")
    files = await node.services.instructions.list(agent.id, harness.user.id)
    return found["rows"], [file.path for file in files]


def test_an_agent_with_a_database_and_files_is_taken_over_by_a_node_with_another_directory(crash, tmp_path):
    first = crash.start(lingers=60)
    crash.wait_for("up", first)
    crash.book(book_with_memory)
    crash.wait_for("step", first, count=2)
    other = crash.start({"data_dir": tmp_path / "other"})
    crash.wait_for("up", other)
    kill(first)
    crash.wait_for("start", other)
    crash.wait_until_done()
    check_everything_happened_once(crash, 1)
    assert crash.book(read_memory) == ([["a"]], ["AGENTS.md"])
