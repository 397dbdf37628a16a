"""Names of tools in data of 0.2 that may mean a built-in tool or one of an MCP server, on both backends."""

import pytest

from fixtures.stores import BACKENDS
from upgrade.old_data import copy_old_data, running_old_server
from wakeful.config.settings import Settings
from wakeful.datadir.device_key import database_of
from wakeful.mcp.rules import McpServer

pytestmark = pytest.mark.upgrade

TOOLS = '["db_query","read_file","db_update","mcp_db_query"]'
CONFIG = '{"session_name":"db_query","tool_ids":["read_file","db_query"]}'
DB = {"db": McpServer(name="db", url="http://127.0.0.1:9/mcp")}

SAVED = """
UPDATE wakes SET tools = '{tools}', session_config = '{config}';
UPDATE sessions SET tool_limit = '["db_query"]' WHERE id = '{session_id}';
INSERT INTO hooks (
    id, user_id, agent_id, name, scheme, encrypted_secret, events, instructions, tools, coalesce_seconds, per_minute,
    mode, enabled, created_at, updated_at
) SELECT 'hook', user_id, id, 'deploys', 'github', 'x', '[]', 'Go.', '{tools}', 0, 60, 'run', 1, 0, 0
FROM agents WHERE id = '{agent_id}';
INSERT INTO allowances (id, user_id, agent_id, session_id, tool, created_at)
SELECT tool, user_id, agent_id, id, tool, 0 FROM sessions, (SELECT 'db_query' AS tool UNION SELECT 'read_file') AS tools
WHERE id = '{session_id}';
INSERT INTO approvals (run_id, call_id, user_id, session_id, agent_id, tool, args, status, asked_at)
SELECT 'run', tool, user_id, id, agent_id, tool, '{{}}', 'approved', 0
FROM sessions, (SELECT 'db_query' AS tool UNION SELECT 'read_file') AS tools WHERE id = '{session_id}';
"""


async def change(old, script):
    """Change the data before the new version has seen it."""
    database = database_of(Settings.model_validate(old.settings))
    await database.open()
    await database.run_script(script)
    await database.close()


@pytest.fixture(params=BACKENDS)
def copied(request, tmp_path):
    url = request.getfixturevalue("postgres_url") if request.param == "postgres" else None
    return copy_old_data(request.param, tmp_path, url, "0.2")


@pytest.fixture
async def old(copied):
    """Data of 0.2 with names of tools wherever they are saved."""
    await change(copied, SAVED.format(tools=TOOLS, config=CONFIG, **copied.facts))
    return copied


async def rows(server, query):
    """Return the first column of every row."""
    database = server.node.store.database
    if database.dialect == "postgres":
        return [row[0] for row in await database.read(lambda statements: statements.connection.fetch(query))]
    return await database.read(lambda statements: _all(statements, query))


async def _all(statements, query):
    return [row[0] for row in statements.connection.execute(query)]


async def start(old, mcp, script="SELECT 1;", where="WHERE 1 = 1"):
    """Start the server, and return what is saved, with the notices about it."""
    async with running_old_server(old.settings | {"mcp": mcp}, old.stopped_at) as server:
        told = (await server.call("GET", "/notifications", token=old.facts["token"]))["notifications"]
        saved = {
            "wakes": set(await rows(server, f"SELECT tools FROM wakes {where}")),
            "configs": set(await rows(server, f"SELECT session_config FROM wakes {where}")),
            "sessions": set(await rows(server, f"SELECT tool_limit FROM sessions {where} AND tool_limit IS NOT NULL")),
            "hooks": set(await rows(server, f"SELECT tools FROM hooks {where}")),
            "allowances": set(await rows(server, f"SELECT tool FROM allowances {where}")),
            "approvals": set(await rows(server, f"SELECT tool FROM approvals {where} AND run_id = 'run'")),
        }
        await server.sql(script)
    return saved, [each for each in told if each["code"] == "tools_dropped"]


AS_BEFORE = {
    "wakes": {TOOLS},
    "configs": {CONFIG},
    "sessions": {'["db_query"]'},
    "hooks": {TOOLS},
    "allowances": {"db_query", "read_file"},
    "approvals": {"db_query", "read_file"},
}


def having(old, servers, toolsets="files"):
    """Return SQL that gives the agent MCP servers and toolsets."""
    columns = f"""mcp_servers = '["{servers}"]', toolsets = '["{toolsets}"]'"""
    return f"UPDATE agents SET {columns} WHERE id = '{old.facts['agent_id']}';"


async def test_a_name_that_meant_a_tool_of_an_mcp_server_is_dropped_once_and_its_owner_notified(old):
    await change(old, having(old, "db"))
    agent = f"WHERE agent_id = '{old.facts['agent_id']}'"
    again = f"UPDATE hooks SET tools = '{TOOLS}';"  # a person sets it after the upgrade, and means the built-in tool
    saved, [notice] = await start(old, DB, again, agent)
    assert saved == {
        "wakes": {'["read_file","mcp_db_query"]'},
        "configs": {'{"session_name":"db_query","tool_ids":["read_file"]}'},
        "sessions": {"[]"},
        "hooks": {'["read_file","mcp_db_query"]'},
        "allowances": {"read_file"},
        "approvals": {"read_file"},
    }
    assert notice["agent_id"] == old.facts["agent_id"]
    assert "db_query, db_update could mean a built-in tool or one of an MCP server" in notice["body"]
    for place in ("scheduled runs", "scheduled sessions", "the hook deploys", "tools allowed in a session"):
        assert place in notice["body"]
    saved, later = await start(old, DB)
    assert saved["hooks"] == {TOOLS}
    assert later == [notice]


async def test_without_such_a_server_a_name_means_the_built_in_tool_and_stays(old):
    assert await start(old, DB) == (AS_BEFORE, [])  # no agent has it
    await change(old, having(old, "db"))
    assert await start(old, DB) == (AS_BEFORE, [])  # the agent got it after the upgrade


async def test_a_name_of_a_tool_that_came_before_that_of_a_server_stays(old):
    await change(old, having(old, "db", "database"))
    assert await start(old, DB) == (AS_BEFORE, [])


async def test_a_name_of_a_server_called_mcp_is_dropped(old):
    await change(old, having(old, "mcp", "database"))
    agent = f"WHERE agent_id = '{old.facts['agent_id']}'"
    saved, told = await start(old, {}, where=agent)
    assert saved == AS_BEFORE | {key: {'["db_query","read_file","db_update"]'} for key in ("wakes", "hooks")}
    assert told
