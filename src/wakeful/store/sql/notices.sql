-- name: add_notice
-- The same key is told once.
INSERT INTO notifications (
    id, user_id, agent_id, code, title, body, wake_id, run_id, session_id, view_ref, once_key, created_at, read_at,
    taken_at, told_at
)
VALUES (:id, :user_id, :agent_id, :code, :title, :body, :wake_id, :run_id, :session_id, :view_ref, :once_key, :created_at, :read_at,
    :taken_at, :told_at)
ON CONFLICT DO NOTHING
RETURNING id;

-- name: notice_by_id
SELECT * FROM notifications WHERE id = :id;

-- name: take_notice
-- Of all nodes that hear of a notice, one gets it and tells the channels. One that was begun and left behind is taken on
-- once more, and then counts as told whatever happens.
UPDATE notifications
SET told_at = CASE WHEN taken_at IS NOT NULL THEN CAST(:now AS BIGINT) END, taken_at = :now
WHERE id = :id AND told_at IS NULL AND (taken_at IS NULL OR taken_at < :left_behind)
RETURNING *;

-- name: settle_notice
UPDATE notifications SET told_at = :now WHERE id = :id AND told_at IS NULL;

-- name: untold_notices
-- What a crash left untold, or half told.
SELECT id FROM notifications
WHERE told_at IS NULL AND COALESCE(taken_at, created_at) < :before ORDER BY created_at LIMIT :most;

-- name: read_notices
UPDATE notifications SET read_at = :now
WHERE user_id = :user_id AND read_at IS NULL AND (CAST(:id AS TEXT) IS NULL OR id = :id)
RETURNING id;

-- name: notices_of_user
SELECT * FROM notifications WHERE user_id = :user_id ORDER BY created_at DESC, id DESC LIMIT :most;

-- name: notices_of_agent
-- What was told in the last hour about one agent under one code, the oldest first. What lies far ahead is from before the
-- clock was set back.
SELECT * FROM notifications
WHERE user_id = :user_id AND agent_id = :agent_id AND code = :code AND created_at > :since AND created_at <= :until
ORDER BY created_at, id;

-- name: add_decisions
INSERT INTO decisions (wake_id, nominal_at, at, position, code, run_id, detail)
SELECT n.wake_id, n.nominal_at, n.at, n.position, n.code, n.run_id, n.detail FROM rows(decisions) AS n;

-- name: decisions_of_wake
SELECT * FROM decisions WHERE wake_id = :wake_id ORDER BY at, position LIMIT :most;
