-- name: unconfined_mcp_servers
SELECT name FROM unconfined_mcp_servers ORDER BY name;

-- name: add_unconfined_mcp_server
INSERT INTO unconfined_mcp_servers (name) VALUES (:name) ON CONFLICT (name) DO NOTHING;

-- name: drop_unconfined_mcp_server
-- Of two nodes that start at once, one gets the row.
DELETE FROM unconfined_mcp_servers WHERE name = :name RETURNING name;
