-- name: unconfined_mcp_servers
SELECT name FROM unconfined_mcp_servers ORDER BY name;

-- name: add_unconfined_mcp_server
INSERT INTO unconfined_mcp_servers (name) VALUES (:name) ON CONFLICT (name) DO NOTHING;

-- name: drop_unconfined_mcp_server
-- Of two nodes that start at once, one gets the row.
DELETE FROM unconfined_mcp_servers WHERE name = :name RETURNING name;

-- name: tools_of_mcp_server
SELECT tools FROM mcp_tools WHERE server = :server;

-- name: save_mcp_tools
INSERT INTO mcp_tools (server, tools) VALUES (:server, :tools)
ON CONFLICT (server) DO UPDATE SET tools = excluded.tools;

-- name: drop_mcp_tools
-- Of two nodes that start at once, one gets the row.
DELETE FROM mcp_tools WHERE server = :server RETURNING server;

-- name: agents_with_mcp_servers
SELECT id FROM agents WHERE deleted_at IS NULL AND mcp_servers <> '[]' ORDER BY id;

-- name: drop_tool_of_wakes
-- Take a name, which is given in quotes, out of JSON lists: in the middle or at the end, at the beginning, or alone.
UPDATE wakes
SET tools = REPLACE(REPLACE(REPLACE(tools, ',' || :quoted, ''), :quoted || ',', ''), :quoted, '')
WHERE agent_id = :agent_id AND tools <> REPLACE(tools, :quoted, '') RETURNING 'scheduled runs' AS place;

-- name: drop_tool_of_sessions
UPDATE sessions
SET tool_limit = REPLACE(REPLACE(REPLACE(tool_limit, ',' || :quoted, ''), :quoted || ',', ''), :quoted, '')
WHERE agent_id = :agent_id AND tool_limit <> REPLACE(tool_limit, :quoted, '') RETURNING 'sessions' AS place;

-- name: drop_tool_of_hooks
UPDATE hooks
SET tools = REPLACE(REPLACE(REPLACE(tools, ',' || :quoted, ''), :quoted || ',', ''), :quoted, '')
WHERE agent_id = :agent_id AND tools <> REPLACE(tools, :quoted, '') RETURNING 'the hook ' || name AS place;

-- name: drop_tool_of_allowances
DELETE FROM allowances WHERE agent_id = :agent_id AND tool = :tool RETURNING 'tools allowed in a session' AS place;

-- name: drop_tool_of_approvals
-- Calls that wait for an answer, or may still be made with the answer that they got.
DELETE FROM approvals
WHERE agent_id = :agent_id AND tool = :tool AND status IN ('pending', 'approved', 'refused')
RETURNING 'calls to approve' AS place;

-- name: session_configs_with
SELECT id, session_config FROM wakes
WHERE agent_id = :agent_id AND session_config <> REPLACE(session_config, :quoted, '');

-- name: save_session_config
UPDATE wakes SET session_config = :session_config WHERE id = :id;
