-- name: save_approval
-- A provider may use the id of a call again in the same run: then the latest counts.
INSERT INTO approvals (run_id, call_id, user_id, session_id, tool, args, status, note, asked_at, answered_at)
VALUES (:run_id, :call_id, :user_id, :session_id, :tool, :args, :status, :note, :asked_at, :answered_at)
ON CONFLICT (run_id, call_id) DO UPDATE SET
    tool = excluded.tool, args = excluded.args, status = excluded.status, note = excluded.note,
    asked_at = excluded.asked_at, answered_at = excluded.answered_at
RETURNING call_id;

-- name: approvals_of_run
SELECT * FROM approvals WHERE run_id = :run_id ORDER BY asked_at, call_id;
