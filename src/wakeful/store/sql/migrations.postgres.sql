-- name: live_nodes
-- Before a migration: nodes with a recent heartbeat.
SELECT name FROM nodes WHERE seen_at > :since ORDER BY name;

-- name: agents_without_home
-- Before migration 45, which drops the table: agents whose files 0.1 left in a data directory, and 0.2 has not moved.
SELECT b.agent_id, d.place
FROM agent_directories b
JOIN directories d ON d.id = b.directory_id
JOIN agents a ON a.id = b.agent_id AND a.deleted_at IS NULL
WHERE NOT EXISTS (SELECT 1 FROM homes h WHERE h.agent_id = b.agent_id AND h.seq > 0)
ORDER BY b.agent_id;
