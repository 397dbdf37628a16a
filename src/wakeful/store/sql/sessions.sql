-- name: add_sessions
INSERT INTO sessions (id, agent_id, user_id, title, origin_session_id, origin_wake_id, origin_label, created_at)
SELECT n.id, n.agent_id, n.user_id, n.title, n.origin_session_id, n.origin_wake_id, n.origin_label, n.created_at
FROM rows(sessions) AS n
WHERE TRUE
ON CONFLICT DO NOTHING
RETURNING id;

-- name: session_of_user
SELECT * FROM sessions WHERE id = :id AND user_id = :user_id;

-- name: session_by_id
SELECT * FROM sessions WHERE id = :id;

-- name: take_positions
-- Reserve places at the end of a transcript; the session's row orders those who write at once.
UPDATE sessions SET last_position = last_position + :count WHERE id = :id RETURNING last_position;

-- name: take_seqs
UPDATE sessions SET last_seq = last_seq + :count WHERE id = :id RETURNING last_seq;

-- name: add_message
-- One whose answer got lost on the way is written again under the same id, and is there once.
INSERT INTO messages (id, session_id, position, run_id, role, content, is_recall, source, wake_id, label, created_at)
VALUES (:id, :session_id, :position, :run_id, :role, :content, :is_recall, :source, :wake_id, :label, :created_at)
ON CONFLICT (id) DO NOTHING;

-- name: messages_of_run
SELECT * FROM messages WHERE run_id = :run_id ORDER BY position;

-- name: messages_of_session
SELECT * FROM messages WHERE session_id = :session_id AND position > :after ORDER BY position LIMIT :most;

-- name: add_events
INSERT INTO run_events (session_id, seq, run_id, at, data)
SELECT n.session_id, n.seq, n.run_id, n.at, n.data FROM rows(run_events) AS n;

-- name: events_after
SELECT seq, run_id, data FROM run_events WHERE session_id = :session_id AND seq > :after ORDER BY seq LIMIT :most;

-- name: delete_old_events
-- Streamed pieces go some time after their run's end; the messages stay.
DELETE FROM run_events
WHERE at < :before AND NOT EXISTS (
    SELECT 1 FROM runs r WHERE r.id = run_events.run_id AND (r.finished_at IS NULL OR r.finished_at >= :before)
);
