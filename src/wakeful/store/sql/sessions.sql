-- name: add_sessions
INSERT INTO sessions (
    id, agent_id, user_id, title, tool_limit, origin_session_id, origin_wake_id, origin_label, created_at, updated_at
)
SELECT
    n.id, n.agent_id, n.user_id, n.title, n.tool_limit, n.origin_session_id, n.origin_wake_id, n.origin_label,
    n.created_at, n.updated_at
FROM rows(sessions) AS n
WHERE TRUE
ON CONFLICT DO NOTHING;

-- name: session_of_user
SELECT * FROM sessions WHERE id = :id AND user_id = :user_id;

-- name: session_by_id
SELECT * FROM sessions WHERE id = :id;

-- name: sessions_of_user
-- The latest first. Each page goes on where the one before ended. Titles are few and short enough to be looked through.
SELECT * FROM sessions
WHERE
    user_id = :user_id AND (CAST(:agent_id AS TEXT) IS NULL OR agent_id = :agent_id)
    AND (CAST(:before AS BIGINT) IS NULL OR updated_at < :before OR (updated_at = :before AND id < :before_id))
    AND (CAST(:title AS TEXT) IS NULL OR LOWER(title) LIKE :title ESCAPE '\')
    AND (CAST(:booked AS TEXT) IS NULL OR id IN (
        SELECT w.session_id FROM wakes w
        WHERE w.user_id = :user_id AND w.status IN ('pending', 'queued') AND :booked IN ('any', w.kind)
    ))
    AND (CAST(:is_unattended AS BIGINT) IS NULL OR :is_unattended = CASE
        WHEN origin_wake_id IS NULL THEN 0
        WHEN EXISTS (
            SELECT 1 FROM messages m WHERE m.session_id = sessions.id AND m.role = 'user' AND m.wake_id IS NULL
        ) THEN 0
        ELSE 1
    END)
ORDER BY updated_at DESC, id DESC LIMIT :most;

-- name: rename_session
UPDATE sessions SET title = :title WHERE id = :id AND user_id = :user_id RETURNING *;

-- name: hand_over_session
-- Another agent goes on there, with no more tools than these.
UPDATE sessions SET agent_id = :agent_id, tool_limit = :tool_limit WHERE id = :id AND user_id = :user_id RETURNING *;

-- name: title_session
-- A title that someone gave meanwhile stays.
UPDATE sessions SET title = :title WHERE id = :id AND title = '' RETURNING *;

-- name: delete_session
-- Its messages, events, images and uploads go with it.
DELETE FROM sessions WHERE id = :id AND user_id = :user_id RETURNING id;

-- name: add_image
INSERT INTO images (id, session_id, media_type, content) VALUES (:id, :session_id, :media_type, :content);

-- name: image_of_session
SELECT media_type, content FROM images WHERE id = :id AND session_id = :session_id;

-- name: add_upload
INSERT INTO uploads (id, session_id, name, path, size, created_at)
VALUES (:id, :session_id, :name, :path, :size, :created_at);

-- name: session_exists
SELECT id FROM sessions WHERE id = :id;

-- name: uploads_of_session
SELECT * FROM uploads WHERE session_id = :session_id ORDER BY created_at, id;

-- name: take_positions
-- Reserve places at the end of a transcript; the lock on the session's row orders concurrent writers.
UPDATE sessions SET last_position = last_position + :count, updated_at = :now WHERE id = :id
RETURNING last_position, user_id;

-- name: take_seqs
-- Reserve sequence numbers (their count is last_seq of each row) at the end of sessions' streams.
UPDATE sessions SET last_seq = sessions.last_seq + n.last_seq
FROM rows(sessions) AS n
WHERE sessions.id = n.id
RETURNING sessions.id, sessions.last_seq;

-- name: add_message
-- One whose answer got lost on the way is written again under the same id, and is there once.
INSERT INTO messages (id, session_id, position, run_id, role, content, is_recall, source, wake_id, label, data, created_at)
VALUES (
    :id, :session_id, :position, :run_id, :role, :content, :is_recall, :source, :wake_id, :label, :data, :created_at
)
ON CONFLICT (id) DO NOTHING;

-- name: add_messages
INSERT INTO messages (id, session_id, position, run_id, role, content, is_recall, source, wake_id, label, data, created_at)
SELECT
    n.id, n.session_id, n.position, n.run_id, n.role, n.content, n.is_recall, n.source, n.wake_id, n.label, n.data,
    n.created_at
FROM rows(messages) AS n;

-- name: supersede_messages
-- Everything from a message on becomes an earlier version.
UPDATE messages SET superseded_by = :run_id
WHERE session_id = :session_id AND position >= :first AND position < :before AND superseded_by IS NULL
RETURNING id;

-- name: messages_of_run
SELECT * FROM messages WHERE run_id = :run_id ORDER BY position;

-- name: messages_of_session
SELECT * FROM messages WHERE session_id = :session_id AND position > :after ORDER BY position LIMIT :most;

-- name: add_events
INSERT INTO events (session_id, seq, run_id, id, at, frames, data)
SELECT n.session_id, n.seq, n.run_id, n.id, n.at, n.frames, n.data FROM rows(events) AS n;

-- name: last_event
SELECT seq, id FROM events WHERE session_id = :session_id ORDER BY seq DESC LIMIT 1;

-- name: events_after
-- Rows with at least one frame past a seq, in order, up to a number of rows and of characters; at least one.
SELECT seq, run_id, frames, data FROM (
    SELECT seq, run_id, frames, data, SUM(LENGTH(data)) OVER (ORDER BY seq) - LENGTH(data) AS characters_before
    FROM (
        SELECT seq, run_id, frames, data FROM events
        WHERE session_id = :session_id AND seq > :after ORDER BY seq LIMIT :most
    ) AS rows_after
) AS page WHERE characters_before < :most_characters ORDER BY seq;

-- name: first_seq_of_run
-- The seq of a run's first frame; NULL if none is kept.
SELECT MIN(seq - frames + 1) AS first_seq FROM events WHERE session_id = :session_id AND run_id = :run_id;

-- name: seqs_of_session
-- The last seq that was given, and the first that is still kept.
SELECT
    s.last_seq AS last_seq,
    (SELECT e.seq - e.frames + 1 FROM events e WHERE e.session_id = s.id ORDER BY e.seq LIMIT 1) AS first_seq
FROM sessions s WHERE s.id = :id;

-- name: delete_old_events
-- Streamed pieces go some time after their run's end; the messages stay.
DELETE FROM events
WHERE at < :before AND NOT EXISTS (
    SELECT 1 FROM runs r WHERE r.id = events.run_id AND (r.finished_at IS NULL OR r.finished_at >= :before)
);
