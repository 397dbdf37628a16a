-- name: save_approval
-- A provider may use the id of a call again in the same run: then the latest counts.
INSERT INTO approvals (run_id, call_id, user_id, session_id, agent_id, tool, args, status, sentence, note, asked_at, answered_at)
VALUES (:run_id, :call_id, :user_id, :session_id, :agent_id, :tool, :args, :status, :sentence, :note, :asked_at, :answered_at)
ON CONFLICT (run_id, call_id) DO UPDATE SET
    agent_id = excluded.agent_id, tool = excluded.tool, args = excluded.args, status = excluded.status,
    sentence = excluded.sentence, note = excluded.note, asked_at = excluded.asked_at, answered_at = excluded.answered_at
RETURNING call_id;

-- name: approvals_of_run
SELECT * FROM approvals WHERE run_id = :run_id ORDER BY asked_at, call_id;

-- name: approvals_waiting
-- Calls of a user's unfinished runs that wait for an answer. A run that was stopped leaves its question unanswered.
SELECT a.* FROM approvals a JOIN runs r ON r.id = a.run_id
WHERE a.user_id = :user_id AND a.status = 'pending' AND r.status IN ('queued', 'running')
ORDER BY a.asked_at, a.call_id LIMIT :most;

-- name: add_allowance
INSERT INTO allowances (id, user_id, agent_id, session_id, tool, created_at)
VALUES (:id, :user_id, :agent_id, :session_id, :tool, :created_at)
ON CONFLICT (session_id, agent_id, tool) DO NOTHING
RETURNING id;

-- name: allowance_in_session
SELECT id FROM allowances WHERE session_id = :session_id AND agent_id = :agent_id AND tool = :tool;

-- name: allowances_of_agent
SELECT * FROM allowances WHERE agent_id = :agent_id AND user_id = :user_id ORDER BY created_at, id;

-- name: delete_allowance
DELETE FROM allowances WHERE id = :id AND agent_id = :agent_id AND user_id = :user_id RETURNING *;
