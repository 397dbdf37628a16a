-- name: add_hook
-- No row comes back if the name is taken.
INSERT INTO hooks (
    id, user_id, agent_id, session_id, name, scheme, encrypted_secret, encrypted_old_secret, old_until, events,
    instructions, tools, coalesce_seconds, per_minute, mode, enabled, last_at, refused_at, refused_why, created_at,
    updated_at
)
VALUES (
    :id, :user_id, :agent_id, :session_id, :name, :scheme, :encrypted_secret, :encrypted_old_secret, :old_until,
    :events, :instructions, :tools, :coalesce_seconds, :per_minute, :mode, :enabled, :last_at, :refused_at,
    :refused_why, :created_at, :updated_at
)
ON CONFLICT DO NOTHING
RETURNING id;

-- name: hooks_of_user
SELECT h.* FROM hooks h JOIN agents a ON a.id = h.agent_id
WHERE h.user_id = :user_id AND a.deleted_at IS NULL ORDER BY h.name;

-- name: hook_of_user
-- Read one in order to change it.
SELECT h.* FROM hooks h JOIN agents a ON a.id = h.agent_id
WHERE h.id = :id AND h.user_id = :user_id AND a.deleted_at IS NULL /*postgres FOR UPDATE OF h */;

-- name: open_hook
-- One that takes deliveries: switched on, of an agent and a person who are still there.
SELECT h.* FROM hooks h JOIN agents a ON a.id = h.agent_id JOIN users u ON u.id = h.user_id
WHERE h.id = :id AND h.enabled = 1 AND a.deleted_at IS NULL AND u.deleted_at IS NULL;

-- name: lock_open_hook
-- The same, in order to take a delivery: one at a time, so that of two with the same id one is the duplicate.
SELECT h.* FROM hooks h JOIN agents a ON a.id = h.agent_id JOIN users u ON u.id = h.user_id
WHERE h.id = :id AND h.enabled = 1 AND a.deleted_at IS NULL AND u.deleted_at IS NULL /*postgres FOR UPDATE OF h */;

-- name: save_hook
UPDATE hooks
SET
    agent_id = :agent_id, session_id = :session_id, name = :name, encrypted_secret = :encrypted_secret,
    encrypted_old_secret = :encrypted_old_secret, old_until = :old_until, events = :events,
    instructions = :instructions, tools = :tools, coalesce_seconds = :coalesce_seconds, per_minute = :per_minute,
    mode = :mode, enabled = :enabled, updated_at = :updated_at
WHERE id = :id;

-- name: note_hook_delivery
UPDATE hooks SET last_at = :now, session_id = :session_id WHERE id = :id;

-- name: note_hook_refusal
UPDATE hooks SET refused_at = :now, refused_why = :why WHERE id = :id;

-- name: delete_hook
DELETE FROM hooks WHERE id = :id AND user_id = :user_id RETURNING id;

-- name: delete_hooks_of_agent
DELETE FROM hooks WHERE agent_id = :agent_id;

-- name: delete_old_hook_secrets
UPDATE hooks SET encrypted_old_secret = NULL, old_until = NULL WHERE old_until <= :now;

-- name: add_hook_delivery
INSERT INTO hook_deliveries (
    id, hook_id, delivery_id, sha256, event, at, outcome, wake_id, run_id, size, payload
)
VALUES (:id, :hook_id, :delivery_id, :sha256, :event, :at, :outcome, :wake_id, :run_id, :size, :payload);

-- name: delete_hook_delivery
DELETE FROM hook_deliveries WHERE id = :id;

-- name: hook_delivery_by_sender
SELECT id, hook_id, delivery_id, sha256, event, at, outcome, wake_id, run_id, size FROM hook_deliveries
WHERE hook_id = :hook_id AND delivery_id = :delivery_id;

-- name: hook_delivery_by_body
SELECT id, hook_id, delivery_id, sha256, event, at, outcome, wake_id, run_id, size FROM hook_deliveries
WHERE hook_id = :hook_id AND sha256 = :sha256 ORDER BY at LIMIT 1;

-- name: hook_deliveries_lately
-- How many were accepted since a time, and the first of them. Times far ahead are from before the clock was set back.
SELECT COUNT(*) AS taken, MIN(at) AS first_at FROM hook_deliveries
WHERE hook_id = :hook_id AND at > :since AND at <= :until AND outcome IN ('run', 'folded', 'notified');

-- name: deliveries_of_hook
-- The latest first. Each page goes on where the one before ended.
SELECT id, hook_id, delivery_id, sha256, event, at, outcome, wake_id, run_id, size FROM hook_deliveries
WHERE
    hook_id = :hook_id
    AND (CAST(:before AS BIGINT) IS NULL OR at < :before OR (at = :before AND id < :before_id))
ORDER BY at DESC, id DESC LIMIT :most;

-- name: payload_of_hook_delivery
SELECT * FROM hook_deliveries WHERE id = :id AND hook_id = :hook_id;

-- name: deliveries_of_wake
SELECT d.*, h.name AS hook_name FROM hook_deliveries d JOIN hooks h ON h.id = d.hook_id
WHERE d.wake_id = :wake_id ORDER BY d.at, d.id;

-- name: count_deliveries_of_wake
SELECT COUNT(*) AS taken FROM hook_deliveries WHERE wake_id = :wake_id;

-- name: live_wakes_of_hook
-- Those whose run has not begun. The doors are those of the index.
SELECT id FROM wakes
WHERE token_id = :hook_id AND door IN ('mcp', 'v1', 'hook') AND status IN ('pending', 'queued');

-- name: delete_old_hook_deliveries
DELETE FROM hook_deliveries WHERE at < :before;

-- name: drop_old_hook_payloads
-- Not of one whose run waits or executes.
UPDATE hook_deliveries SET payload = NULL
WHERE
    at < :before AND payload IS NOT NULL
    AND NOT EXISTS (
        SELECT 1 FROM wakes w WHERE w.id = hook_deliveries.wake_id AND w.status IN ('pending', 'queued', 'running')
    );
