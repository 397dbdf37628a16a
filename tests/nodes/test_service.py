"""Nodes on one PostgreSQL: who they are, draining, MCP servers, owner tokens, device keys and other versions."""

from dataclasses import replace

import asyncpg
import pytest

from harness import MINUTE, SECOND, Harness, eventually
from wakeful.app.building import build
from wakeful.app.http import welcome
from wakeful.config.settings import Settings
from wakeful.core.clock import ServerClock
from wakeful.core.identity import Identity, OwnersOnly
from wakeful.core.records import NoSuchNode, OnlyNode
from wakeful.homes import directories
from wakeful.homes.directories import OtherDeviceKey
from wakeful.mcp.rules import McpServer
from wakeful.store.errors import StoreIsNewer

LEASE = 30 * SECOND
WEATHER = {"weather": McpServer(name="weather", command=("true",))}


@pytest.fixture
def settings(tmp_path, swept_postgres_url):
    return {"data_dir": tmp_path / "here", "config_dir": tmp_path / "config", "database_url": swept_postgres_url}


@pytest.fixture
async def harness(settings):
    """A world whose own node is named `one`."""
    async with Harness(settings | {"node_name": "one"}).opened() as harness:
        yield harness


@pytest.fixture
async def two(harness, tmp_path):
    """A node with a data directory of its own."""
    node = harness.another_node(node_name="two", data_dir=tmp_path / "there")
    async with node.opened():
        yield node


async def arrive(*nodes):
    for node in nodes:
        await node.services.directories.arrive()
        await node.services.nodes.arrive()


async def leave(node):
    await node.services.directories.leave()


async def turn(node):
    await node.engine.scheduler.turn()
    await node.engine.runner.turn()
    await node.engine.runner.idle()


def owner_of(harness):
    return Identity(user=harness.user, scope="admin", token_id="t")


async def nodes_seen(harness):
    return {node.name: node for node in await harness.node.services.nodes.list(owner_of(harness))}


def id_of(node):
    return node.services.nodes.identity.owner


# ── Seen ────────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_every_node_is_listed_with_what_it_does(harness, two, tmp_path):
    await arrive(harness.node, two)
    agent = await harness.add_agent()
    await two.store.write(lambda tx: tx.homes.hold(agent.id, id_of(two), None, harness.clock.now()))
    seen = await nodes_seen(harness)
    assert list(seen) == ["one", "two"]
    assert (seen["two"].agents, seen["two"].runs, seen["two"].is_alive) == (1, 0, True)
    assert str(tmp_path / "there") in seen["two"].place
    assert seen["one"].version
    harness.clock.advance(LEASE + SECOND)
    assert not (await nodes_seen(harness))["two"].is_alive


async def test_only_owners_see_them(harness):
    harness.user = replace(harness.user, role="user")
    with pytest.raises(OwnersOnly):
        await harness.node.services.nodes.list(owner_of(harness))
    with pytest.raises(OwnersOnly):
        await harness.node.services.nodes.drain("x", owner_of(harness))


async def test_a_run_has_the_name_of_the_node_that_executed_it(harness, two):
    wake = await harness.book(call_type="immediate")
    await turn(two)
    [run] = await harness.runs_of(wake)
    assert (run.status, run.node) == ("success", "two")


async def test_an_embedded_store_has_one_node_that_cannot_drain(tmp_path):
    async with Harness(
        {"data_dir": tmp_path / "data", "config_dir": tmp_path / "config", "node_name": "alone"}
    ).opened() as harness:
        [node] = await harness.node.services.nodes.list(owner_of(harness))
        assert (node.name, node.agents) == ("alone", 1)
        with pytest.raises(OnlyNode):
            await harness.node.services.nodes.drain(node.id, owner_of(harness))


# ── Draining ────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_draining_node_hands_back_its_runs_and_another_continues_them(harness, two):
    await arrive(harness.node, two)
    gate = harness.executor.default = harness.gate()
    wake = await harness.book(call_type="immediate")
    await harness.node.engine.scheduler.turn()
    await harness.node.engine.runner.turn()
    await eventually(lambda: is_holding(gate))
    nodes = two.services.nodes  # any node can be asked
    assert (await nodes.drain(id_of(harness.node), owner_of(harness))).is_draining
    await harness.node.engine.apply_draining()
    [run] = await harness.runs_of(wake)
    assert (run.status, run.attempt) == ("queued", 0)  # handed back, not counted as an attempt
    await turn(harness.node)
    assert (await harness.runs_of(wake))[0].status == "queued"  # a draining node claims nothing
    gate.open()
    await turn(two)
    [run] = await harness.runs_of(wake)
    assert (run.status, run.node) == ("success", "two")
    assert harness.node.engine.readiness().is_ready

    await nodes.undrain(id_of(harness.node), owner_of(harness))
    await harness.node.engine.apply_draining()
    again = await harness.book(call_type="immediate")
    await turn(harness.node)
    assert (await harness.runs_of(again))[0].node == "one"


async def is_holding(gate):
    return gate.is_holding > 0


async def test_a_node_taken_for_dead_while_it_drains_comes_back_draining(harness, two):
    await arrive(harness.node, two)
    await two.services.nodes.drain(id_of(harness.node), owner_of(harness))
    await harness.node.engine.apply_draining()
    harness.clock.advance(2 * LEASE)
    await arrive(two)  # deletes the rows of nodes without a heartbeat
    assert list(await nodes_seen(harness)) == ["two"]
    await harness.node.services.directories.arrive()
    await harness.node.engine.apply_draining()
    assert (await nodes_seen(harness))["one"].is_draining


async def test_an_unknown_node_cannot_drain(harness):
    with pytest.raises(NoSuchNode, match="wakeful node ls"):
        await harness.node.services.nodes.drain("ffff", owner_of(harness))


# ── MCP servers ─────────────────────────────────────────────────────────────────────────────────────────────────────


async def add_weather_agent(harness):
    """Add an agent with an MCP server that the harness's own node does not have."""
    agent = await harness.add_agent()
    await harness.sql(f"""UPDATE agents SET mcp_servers = '["weather"]' WHERE id = '{agent.id}'""")
    return agent


async def test_a_run_goes_to_a_node_that_has_its_mcp_servers(harness, tmp_path):
    agent = await add_weather_agent(harness)
    wake = await harness.book(agent=agent, call_type="immediate")
    await arrive(harness.node)
    await turn(harness.node)
    assert (await harness.runs_of(wake))[0].status == "queued"

    await harness.node.engine.mcp_holds.sweep()
    await harness.node.engine.mcp_holds.sweep()  # told once
    [run] = await harness.runs_of(wake)
    assert run.reason == "mcp_elsewhere"
    [notice] = await harness.notices()
    assert notice.code == "mcp_elsewhere"
    assert "weather" in notice.body
    assert [said.code for said in await harness.why(wake)].count("mcp_elsewhere") == 1

    able = harness.another_node(node_name="able", data_dir=tmp_path / "able", mcp=WEATHER)
    async with able.opened():
        await arrive(able)
        await harness.node.engine.mcp_holds.sweep()
        assert (await harness.runs_of(wake))[0].reason is None
        await turn(harness.node)
        assert (await harness.runs_of(wake))[0].status == "queued"
        await turn(able)
        [run] = await harness.runs_of(wake)
        assert (run.status, run.node, run.reason) == ("success", "able", None)


async def test_a_run_that_waits_for_mcp_servers_holds_up_no_other(harness):
    waiting = await add_weather_agent(harness)
    await harness.book(agent=waiting, call_type="immediate")
    await turn(harness.node)
    await harness.node.engine.mcp_holds.sweep()
    other = await harness.book(call_type="immediate")
    await turn(harness.node)
    assert (await harness.runs_of(other))[0].status == "success"


async def test_a_draining_node_does_not_count_as_one_that_has_them(harness, tmp_path):
    able = harness.another_node(node_name="able", data_dir=tmp_path / "able", mcp=WEATHER)
    async with able.opened():
        await arrive(harness.node, able)
        agent = await add_weather_agent(harness)
        wake = await harness.book(agent=agent, call_type="immediate")
        await harness.node.engine.scheduler.turn()
        await harness.node.engine.mcp_holds.sweep()
        assert (await harness.runs_of(wake))[0].reason is None
        await able.services.nodes.drain(id_of(able), owner_of(harness))
        await harness.node.engine.mcp_holds.sweep()
        assert (await harness.runs_of(wake))[0].reason == "mcp_elsewhere"


# ── Owner tokens ────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_the_tokens_of_running_nodes_all_work_and_one_that_no_node_has_is_revoked(harness, tmp_path):
    first = harness.another_node(node_name="first", token="a" * 30)
    second = harness.another_node(node_name="second", token="b" * 30, data_dir=tmp_path / "there")
    async with first.opened(), second.opened():
        await welcome(first)
        await welcome(second)
        for token in ("a" * 30, "b" * 30):
            assert await first.services.accounts.identify(token) is not None
        await leave(first)
        await second.services.nodes.tidy()
        harness.clock.advance(5 * SECOND)  # a node remembers a token for a second
        assert await second.services.accounts.identify("b" * 30) is not None
        assert await second.services.accounts.identify("a" * 30) is None


# ── Device keys ─────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_node_with_another_device_key_is_refused_and_starts_with_the_right_one(harness, tmp_path):
    other = {"data_dir": tmp_path / "there", "config_dir": tmp_path / "other-config"}
    with pytest.raises(OtherDeviceKey, match=r"other-config.*Copy device\.key"):
        async with harness.another_node(**other).opened():
            pass
    key = (tmp_path / "config" / "device.key").read_text()
    (tmp_path / "other-config" / "device.key").write_text(key)
    async with harness.another_node(**other).opened():
        pass


async def test_a_key_that_is_declared_lost_is_replaced(harness, settings, tmp_path):
    other = {"config_dir": tmp_path / "new-config"}
    path = tmp_path / "here" / directories.ID_FILE
    path.write_text(path.read_text().replace('"device_key":"', '"device_key":null,"was":"'))
    async with harness.another_node(**other).opened() as _:
        pass


# ── Other versions ──────────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_running_node_goes_on_after_a_newer_one_has_added_columns_and_an_old_one_does_not_start(
    harness, settings
):
    """Each statement was prepared before the change, and its result has one column more."""
    wake = await harness.book(call_type="recurring", every=MINUTE, at=harness.clock.now() + MINUTE)
    for _ in range(2):
        harness.clock.advance(MINUTE)
        await turn(harness.node)
        assert await harness.runs_of(wake)
    newer = await asyncpg.connect(settings["database_url"])
    try:
        for table in ("runs", "wakes", "sessions", "messages", "agents", "users", "nodes"):
            await newer.execute(f"ALTER TABLE {table} ADD COLUMN hat TEXT")
        await newer.execute("INSERT INTO migrations (number, name, applied_at) VALUES (9999, 'hats', 0)")
        harness.clock.advance(MINUTE)
        await turn(harness.node)
        assert [run.status for run in await harness.runs_of(wake)] == ["success"] * 3
        with pytest.raises(StoreIsNewer, match="newer Wakeful"):
            async with harness.another_node().opened():
                pass
    finally:
        await newer.close()


async def test_nodes_whose_own_clocks_differ_by_minutes_agree_about_the_time(settings, tmp_path):
    """Every node uses PostgreSQL's clock; see `ServerClock`."""
    node = build(Settings.model_validate(settings))
    async with node.opened():

        class Ahead(ServerClock):
            def read_wall_clock(self):
                return super().read_wall_clock() + 7 * MINUTE

        ahead = Ahead(node.store.read_clock)
        await ahead.measure()
        assert abs(ahead.now() - node.clock.now()) < SECOND
