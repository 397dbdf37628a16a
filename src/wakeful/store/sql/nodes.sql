-- name: describe_node
-- After see_node, which knows only the data directory.
UPDATE nodes
SET
    name = :name, version = :version, started_at = :started_at, mcp_servers = :mcp_servers,
    is_draining = :is_draining, token_id = :token_id
WHERE owner = :owner;

-- name: set_node_token
UPDATE nodes SET token_id = :token_id WHERE owner = :owner;

-- name: all_nodes
SELECT
    n.owner AS id, n.name, n.version, n.started_at, n.seen_at, n.is_draining, n.mcp_servers, d.place,
    CASE WHEN n.seen_at > :since THEN 1 ELSE 0 END AS is_alive,
    (SELECT COUNT(*) FROM runs r WHERE r.status = 'running' AND r.owner = n.owner) AS runs,
    /*postgres (
        SELECT COUNT(*) FROM homes h JOIN agents a ON a.id = h.agent_id AND a.deleted_at IS NULL
        WHERE h.holder = n.owner
    ) */
    /*sqlite 0 */
    AS agents
FROM nodes n JOIN directories d ON d.id = n.directory_id
ORDER BY n.name, n.started_at, n.owner;

-- name: count_agents
SELECT COUNT(*) AS agents FROM agents WHERE deleted_at IS NULL;

-- name: set_draining
UPDATE nodes SET is_draining = :is_draining WHERE owner = :owner RETURNING owner;

-- name: node_by_owner
SELECT name, is_draining FROM nodes WHERE owner = :owner;

-- name: agents_without_mcp_node
-- Agents that need MCP servers which no running node has.
SELECT g.id FROM agents g
WHERE
    g.deleted_at IS NULL AND g.mcp_servers <> '[]'
    /*postgres AND NOT EXISTS (
        SELECT 1 FROM nodes n
        WHERE
            n.seen_at > :since AND n.is_draining = 0
            AND CAST(g.mcp_servers AS jsonb) <@ CAST(n.mcp_servers AS jsonb)
    ) */
    /*sqlite AND :since < 0 */
LIMIT 1;

-- name: hold_runs_for_mcp
-- Mark runs whose agent needs MCP servers that no running node has. Each comes back once, when it is marked.
UPDATE runs SET reason = 'mcp_elsewhere'
WHERE
    status = 'queued' AND (reason IS NULL OR reason <> 'mcp_elsewhere')
    AND (
        SELECT 1 FROM agents g
        WHERE
            g.id = runs.agent_id AND g.deleted_at IS NULL AND g.mcp_servers <> '[]'
            /*postgres AND NOT EXISTS (
                SELECT 1 FROM nodes n
                WHERE
                    n.seen_at > :since AND n.is_draining = 0
                    AND CAST(g.mcp_servers AS jsonb) <@ CAST(n.mcp_servers AS jsonb)
            ) */
            /*sqlite AND :since < 0 */
        LIMIT 1
    ) IS NOT NULL
RETURNING *;

-- name: release_runs_for_mcp
-- Take the mark off runs whose MCP servers a running node has again, or that no longer need them.
UPDATE runs SET reason = NULL
WHERE
    status = 'queued' AND reason = 'mcp_elsewhere'
    AND (
        SELECT 1 FROM agents g
        WHERE
            g.id = runs.agent_id AND g.deleted_at IS NULL AND g.mcp_servers <> '[]'
            /*postgres AND NOT EXISTS (
                SELECT 1 FROM nodes n
                WHERE
                    n.seen_at > :since AND n.is_draining = 0
                    AND CAST(g.mcp_servers AS jsonb) <@ CAST(n.mcp_servers AS jsonb)
            ) */
            /*sqlite AND :since < 0 */
        LIMIT 1
    ) IS NULL
RETURNING id;

-- name: interrupt_messages_for_mcp
-- People do not wait for ever: a message that has waited too long ends, and can be continued.
UPDATE runs SET status = 'interrupted', error = :error, finished_at = :now
WHERE status = 'queued' AND trigger = 'message' AND reason = 'mcp_elsewhere' AND queued_at <= :before
RETURNING *;
