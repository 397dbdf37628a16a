-- name: save_presence
INSERT INTO presence (session_id, source, until)
SELECT n.session_id, n.source, n.until FROM rows(presence) AS n
WHERE TRUE
ON CONFLICT (session_id, source) DO UPDATE SET until = excluded.until;

-- name: presence_in_session
SELECT session_id FROM presence WHERE session_id = :session_id AND until > :now LIMIT 1;

-- name: end_presence
DELETE FROM presence WHERE session_id = :session_id AND source = :source;

-- name: delete_expired_presence
-- What nobody renewed, and what was saved before the clock was set back.
DELETE FROM presence WHERE until <= :now OR until > :latest;

-- name: end_presence_of_nodes
-- At the start of an embedded store: no other process has a socket open there.
DELETE FROM presence WHERE source <> 'message';

-- name: hold_sessions
-- Keep queued wakes from starting in sessions where someone is present.
UPDATE sessions SET held_until = n.held_until, woken_at = COALESCE(n.woken_at, sessions.woken_at)
FROM rows(sessions) AS n
WHERE
    sessions.id = n.id
    AND (SELECT 1 FROM presence p WHERE p.session_id = n.id AND p.until > n.held_until LIMIT 1) IS NOT NULL
/*postgres RETURNING sessions.id */;
