-- name: save_directory
-- Without `overwrite` a device key that is known stays: of two nodes that start at once, the first says which it is.
INSERT INTO directories (id, place, key_fingerprint, seen_at) VALUES (:id, :place, :key_fingerprint, :seen_at)
ON CONFLICT (id) DO UPDATE SET
    place = excluded.place, seen_at = excluded.seen_at,
    key_fingerprint = CASE
        WHEN CAST(:overwrite AS BIGINT) = 1 THEN excluded.key_fingerprint
        ELSE COALESCE(directories.key_fingerprint, excluded.key_fingerprint)
    END
RETURNING key_fingerprint;

-- name: directory_of_agent
SELECT
    d.id, d.place, d.seen_at,
    (SELECT 1 FROM nodes n WHERE n.directory_id = d.id AND n.seen_at > :since LIMIT 1) AS alive
FROM agent_directories b JOIN directories d ON d.id = b.directory_id WHERE b.agent_id = :agent_id;

-- name: see_directory
UPDATE directories SET seen_at = :now WHERE id = :id;

-- name: see_node
-- Kept fresh by the heartbeat.
INSERT INTO nodes (owner, directory_id, key_fingerprint, seen_at)
VALUES (:owner, :directory_id, :key_fingerprint, :now)
ON CONFLICT (owner) DO UPDATE SET seen_at = excluded.seen_at;

-- name: delete_node
DELETE FROM nodes WHERE owner = :owner;

-- name: delete_dead_nodes
DELETE FROM nodes WHERE seen_at <= :before;

-- name: live_node_with_other_key
SELECT owner FROM nodes
WHERE directory_id = :directory_id AND key_fingerprint <> :key_fingerprint AND seen_at > :since LIMIT 1;

-- name: bind_agent
INSERT INTO agent_directories (agent_id, directory_id) VALUES (:agent_id, :directory_id) ON CONFLICT DO NOTHING;

-- name: unbind_agent
DELETE FROM agent_directories WHERE agent_id = :agent_id AND directory_id = :directory_id;

-- name: away_directories
-- Directories that no node has had since a moment, with agents that need them.
SELECT d.id, d.place, d.seen_at, COUNT(*) AS agents
FROM directories d
JOIN agent_directories b ON b.directory_id = d.id
JOIN agents a ON a.id = b.agent_id AND a.deleted_at IS NULL
WHERE d.seen_at <= :since AND d.id <> :own
GROUP BY d.id, d.place, d.seen_at;

-- name: hold_runs
-- Mark runs that wait for a directory that no node has. Each comes back once, when it is marked.
UPDATE runs SET reason = 'memory_elsewhere'
WHERE
    status = 'queued' AND (reason IS NULL OR reason <> 'memory_elsewhere')
    AND agent_id IN (
        SELECT b.agent_id FROM agent_directories b JOIN directories d ON d.id = b.directory_id
        WHERE d.seen_at <= :since AND d.id <> :own
    )
RETURNING *;

-- name: release_held_runs
-- A node with their directory is back: they wait for a slot like all others.
UPDATE runs SET reason = NULL
WHERE
    status = 'queued' AND reason = 'memory_elsewhere'
    AND agent_id IN (SELECT b.agent_id FROM agent_directories b WHERE b.directory_id = :directory_id)
RETURNING id;

-- name: interrupt_held_messages
-- People do not wait for ever: a message whose directory is missing for too long ends, and can be continued.
UPDATE runs SET status = 'interrupted', error = :error, finished_at = :now
WHERE
    status = 'queued' AND trigger = 'message' AND reason = 'memory_elsewhere'
    AND agent_id IN (
        SELECT b.agent_id FROM agent_directories b JOIN directories d ON d.id = b.directory_id
        WHERE d.seen_at <= :before AND d.id <> :own
    )
RETURNING *;
