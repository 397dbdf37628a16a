-- name: add_notice
-- One notice per key.
INSERT INTO notifications (
    id, user_id, agent_id, code, title, body, wake_id, run_id, session_id, view_ref, once_key, created_at, read_at,
    times, resolved_at
)
VALUES (
    :id, :user_id, :agent_id, :code, :title, :body, :wake_id, :run_id, :session_id, :view_ref, :once_key, :created_at,
    :read_at, :times, :resolved_at
)
ON CONFLICT DO NOTHING
RETURNING id;

-- name: notice_by_id
SELECT * FROM notifications WHERE id = :id;

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
