-- name: client_sessions_by_key
-- The latest first: after an edit of its history a conversation goes on in a newer session.
SELECT * FROM client_sessions WHERE user_id = :user_id AND client_key = :client_key ORDER BY at DESC, session_id DESC
LIMIT :most;

-- name: client_sessions_by_history
SELECT * FROM client_sessions WHERE user_id = :user_id AND history_key = :history_key
ORDER BY at DESC, session_id DESC LIMIT :most;

-- name: save_client_session
-- A key that is known stays when a client names the session or sends no key.
INSERT INTO client_sessions (session_id, user_id, client_key, history_key, run_id, at)
VALUES (:session_id, :user_id, :client_key, :history_key, :run_id, :at)
ON CONFLICT (session_id) DO UPDATE SET
    client_key = COALESCE(excluded.client_key, client_sessions.client_key), history_key = excluded.history_key,
    run_id = excluded.run_id, at = excluded.at;

-- name: delete_old_client_sessions
DELETE FROM client_sessions WHERE at < :before;
