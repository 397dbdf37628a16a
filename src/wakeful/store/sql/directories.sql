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
