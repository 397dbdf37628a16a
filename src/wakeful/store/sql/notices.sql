-- name: add_notice
-- One notice per key.
INSERT INTO notifications (
    id, user_id, agent_id, code, title, body, wake_id, run_id, session_id, view_ref, once_key, created_at, read_at,
    taken_at, told_at, times, resolved_at
)
VALUES (:id, :user_id, :agent_id, :code, :title, :body, :wake_id, :run_id, :session_id, :view_ref, :once_key, :created_at, :read_at,
    :taken_at, :told_at, :times, :resolved_at)
ON CONFLICT DO NOTHING
RETURNING id;

-- name: notice_by_id
SELECT * FROM notifications WHERE id = :id;

-- name: claim_notice
-- Of all nodes that are notified of a notice, one claims it and delivers it to the channels. An abandoned claim is made
-- once more, and then the notice counts as delivered.
UPDATE notifications
SET told_at = CASE WHEN taken_at IS NOT NULL THEN CAST(:now AS BIGINT) END, taken_at = :now
WHERE id = :id AND told_at IS NULL AND (taken_at IS NULL OR taken_at < :left_behind)
RETURNING *;

-- name: mark_notice_delivered
UPDATE notifications SET told_at = :now WHERE id = :id AND told_at IS NULL;

-- name: untold_notices
-- Notices that a crash left undelivered, or delivered to some channels.
SELECT id FROM notifications
WHERE told_at IS NULL AND COALESCE(taken_at, created_at) < :before ORDER BY created_at LIMIT :most;

-- name: read_notices
UPDATE notifications SET read_at = :now
WHERE user_id = :user_id AND read_at IS NULL AND (CAST(:id AS TEXT) IS NULL OR id = :id)
RETURNING id;

-- name: resolve_notices
UPDATE notifications SET resolved_at = :now, read_at = COALESCE(read_at, :now)
WHERE user_id = :user_id AND agent_id = :agent_id AND code = :code AND resolved_at IS NULL
RETURNING id;

-- name: notices_of_user
SELECT * FROM notifications WHERE user_id = :user_id ORDER BY created_at DESC, id DESC LIMIT :most;

-- name: notices_of_agent
-- Notices of the last hour about one agent under one code, the oldest first. Times far ahead are from before the clock was
-- set back.
SELECT * FROM notifications
WHERE user_id = :user_id AND agent_id = :agent_id AND code = :code AND created_at > :since AND created_at <= :until
ORDER BY created_at, id;

-- name: add_decisions
INSERT INTO decisions (wake_id, nominal_at, at, position, code, run_id, detail)
SELECT n.wake_id, n.nominal_at, n.at, n.position, n.code, n.run_id, n.detail FROM rows(decisions) AS n;

-- name: decisions_of_wake
SELECT * FROM decisions WHERE wake_id = :wake_id ORDER BY at, position LIMIT :most;
