"""Real processes on PostgreSQL with separate data directories: the one that has an agent's memory is killed."""

import pytest

from crash.scene import LEASE, Scene, book_one, check_everything_happened_once, kill
from crash.worker import STEPS


@pytest.fixture
def scene(tmp_path, postgres_url):
    scene = Scene(tmp_path, postgres_url)
    yield scene
    scene.clean_up()


async def book_with_memory(world):
    """Book a wake of an agent that has a file in the scene's own data directory."""
    await world.node.services.directories.bind(world.agent.id)
    await book_one(world)


def test_a_run_of_a_killed_node_waits_for_its_directory_and_goes_on_from_its_last_step(scene, tmp_path):
    other = scene.start({"data_dir": tmp_path / "other", "config_dir": tmp_path / "other-config"})
    scene.wait_for("up", other)
    scene.book(book_with_memory)
    bound = scene.start(lingers=60)
    scene.wait_for("step", bound, count=2)
    kill(bound)
    scene.wait_until(lambda: scene.run().reason == "memory_elsewhere", "the hold", 3 * LEASE + 10)
    assert scene.run().status == "queued"
    assert len(scene.query("SELECT 1 FROM notifications WHERE code = 'memory_elsewhere'")) == 1
    assert not scene.lines("start", other)
    with scene.running() as back:
        scene.wait_until_done()
        [line] = scene.lines("start", back)
    assert line["steps"] == list(STEPS)
    assert not scene.lines("start", other)
    check_everything_happened_once(scene, 1)


def test_an_agent_without_files_is_taken_over_by_a_node_with_another_directory(scene, tmp_path):
    first = scene.start(lingers=60)
    scene.wait_for("up", first)
    scene.book(book_one)
    scene.wait_for("step", first, count=2)
    other = scene.start({"data_dir": tmp_path / "other", "config_dir": tmp_path / "other-config"})
    scene.wait_for("up", other)
    kill(first)
    scene.wait_for("start", other, seconds=LEASE + 5)
    scene.wait_until_done()
    check_everything_happened_once(scene, 1)
