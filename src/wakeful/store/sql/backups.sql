-- name: scheduled_backups
SELECT * FROM scheduled_backups;

-- name: claim_scheduled_backup
-- One node makes it: the first to replace the start that all of them have read.
INSERT INTO scheduled_backups (id, started_at, renewed_at, node) VALUES (1, :now, :now, :node)
ON CONFLICT (id) DO UPDATE SET started_at = excluded.started_at, renewed_at = excluded.renewed_at, node = excluded.node
WHERE scheduled_backups.started_at = :before AND scheduled_backups.renewed_at = :renewed_before
RETURNING id;

-- name: renew_scheduled_backup
-- The node is still at it.
UPDATE scheduled_backups SET renewed_at = :now WHERE started_at = :started_at RETURNING id;

-- name: finish_scheduled_backup
UPDATE scheduled_backups SET finished_at = :now, file = :file, size = :size WHERE started_at = :started_at RETURNING id;

-- name: fail_scheduled_backup
UPDATE scheduled_backups SET failed_at = :now, error = :error WHERE started_at = :started_at RETURNING id;
