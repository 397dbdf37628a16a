"""A disk that is nearly full, or has no inodes left, is reported before writes fail."""

import itertools
from contextlib import asynccontextmanager, suppress

from harness import DAY, MINUTE, Harness, lay_out
from small_disk import small_disk


@asynccontextmanager
async def a_node(disk):
    settings = {"data_dir": disk / "data", "config_dir": disk / "config"}
    await lay_out(settings)
    async with Harness(settings).opened() as harness:
        yield harness


async def look(harness):
    harness.clock.advance(MINUTE)
    await harness.turn()
    await harness.node.engine.upkeep.look_at_disk()
    return harness.node.engine.readiness()


async def titles(harness):
    return [notice.title for notice in await harness.notices()]


async def test_a_disk_that_is_nearly_full_is_reported_once_until_there_is_room_again():
    with small_disk("40m") as disk:
        async with a_node(disk) as harness:
            assert (await look(harness)).is_ready
            (disk / "ballast").write_bytes(bytes(38 * 1024 * 1024 - sum(f.stat().st_size for f in disk.rglob("*"))))
            for _ in range(3):
                found = await look(harness)
            assert found.codes == ("disk_nearly_full",)
            assert "MB free (" in found.problems[0]
            assert await titles(harness) == ["The server's disk is nearly full"]
            (disk / "ballast").unlink()
            assert (await look(harness)).is_ready
            harness.clock.advance(DAY)
            (disk / "ballast").write_bytes(bytes(38 * 1024 * 1024 - sum(f.stat().st_size for f in disk.rglob("*"))))
            assert not (await look(harness)).is_ready
            assert len(await titles(harness)) == 2


async def test_a_disk_without_inodes_is_reported():
    with small_disk("200m,nr_inodes=300") as disk:
        async with a_node(disk) as harness:
            assert (await look(harness)).is_ready
            with suppress(OSError):
                for number in itertools.count():
                    (disk / f"file-{number}").touch()
            found = await look(harness)
            assert found.codes == ("disk_nearly_full",)
            assert "no inodes" in found.problems[0]
            assert len(await titles(harness)) == 1
