-- name: accept_file
INSERT INTO accepted_files (agent_id, path, digest, accepted_at) VALUES (:agent_id, :path, :digest, :now)
ON CONFLICT DO NOTHING;

-- name: accepted_files
SELECT path, digest FROM accepted_files WHERE agent_id = :agent_id;

-- name: agents_without_compared_files
-- Agents of 0.1, whose files nobody has looked at since the upgrade.
SELECT id FROM agents WHERE files_compared = 0 AND deleted_at IS NULL;

-- name: mark_files_compared
UPDATE agents SET files_compared = 1 WHERE id = :agent_id;
