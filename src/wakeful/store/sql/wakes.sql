-- name: add_wake
-- Book a wake. No row comes back if its slot is taken by a live one.
INSERT INTO wakes (
    id, kind, agent_id, user_id, session_id, slot, call_type, interval_seconds, cron, timezone, wall_clock, until, max_runs,
    nominal_at, attempt_at, first_due_at, is_missed, held_by, comment, instructions, context_views, session_config, priority, on_miss,
    scheduled_by, booked_by_run, ephemeral, status, reason, error, delivery_phase, created_session_id, deferrals, failures,
    runs_started, version, created_at, updated_at
)
VALUES (
    :id, :kind, :agent_id, :user_id, :session_id, :slot, :call_type, :interval_seconds, :cron, :timezone, :wall_clock, :until,
    :max_runs, :nominal_at, :attempt_at, :first_due_at, :is_missed, :held_by, :comment, :instructions, :context_views, :session_config,
    :priority, :on_miss, :scheduled_by, :booked_by_run, :ephemeral, :status, :reason, :error, :delivery_phase,
    :created_session_id, :deferrals, :failures, :runs_started, :version, :created_at, :updated_at
)
ON CONFLICT DO NOTHING
RETURNING id;

-- name: wake_by_id
SELECT * FROM wakes WHERE id = :id;

-- name: lock_wake
-- Read a wake in order to change it: no other node changes it before we are done.
SELECT * FROM wakes WHERE id = :id /*postgres FOR UPDATE */;

-- name: live_wake_in_slot
SELECT * FROM wakes WHERE slot = :slot AND status IN ('pending', 'queued') /*postgres FOR UPDATE */;

-- name: count_schedules_of_session
SELECT session_id, COUNT(*) AS live FROM wakes
WHERE session_id = :session_id AND kind IN ('message', 'session') AND status IN ('pending', 'queued')
GROUP BY session_id;

-- name: wakes_of_session
-- The newest first.
SELECT * FROM wakes WHERE session_id = :session_id ORDER BY created_at DESC, id DESC LIMIT :most;

-- name: due_wakes
-- What the scheduler must decide now, with all it needs to know about the surroundings of each.
-- Another node skips the rows that we hold, so no two decide about the same wake.
SELECT
    w.*,
    a.timezone AS agent_timezone,
    a.bounds AS agent_bounds,
    a.deleted_at AS agent_deleted_at,
    u.deleted_at AS user_deleted_at,
    (SELECT r.id FROM runs r WHERE r.session_id = w.session_id AND r.status = 'running') AS busy_run_id,
    CASE WHEN w.call_type = 'recurring' THEN (
        SELECT r.id FROM runs r WHERE r.wake_id = w.id AND r.status = 'queued' AND r.trigger = 'wake'
        ORDER BY r.nominal_at DESC LIMIT 1
    ) END AS waiting_run_id,
    CASE WHEN w.call_type = 'recurring' THEN (
        SELECT r.id FROM runs r WHERE r.wake_id = w.id AND r.status = 'running' LIMIT 1
    ) END AS running_run_id
FROM wakes w
JOIN agents a ON a.id = w.agent_id
JOIN users u ON u.id = w.user_id
WHERE w.status = 'pending' AND w.attempt_at <= :now
ORDER BY w.attempt_at
LIMIT :most
/*postgres FOR UPDATE OF w SKIP LOCKED */;

-- name: move_wake
-- Move a wake on, only if it is still the version that was read.
UPDATE wakes
SET
    nominal_at = :nominal_at, attempt_at = :attempt_at, first_due_at = :first_due_at, is_missed = :is_missed, held_by = :held_by,
    status = :status, reason = :reason, error = :error, delivery_phase = :delivery_phase,
    created_session_id = :created_session_id, deferrals = :deferrals, failures = :failures, runs_started = :runs_started,
    version = version + 1, updated_at = :updated_at
WHERE id = :id AND version = :version
RETURNING id;

-- name: edit_wake
-- Change what was intended; only a wake that is still the version that was read.
UPDATE wakes
SET
    interval_seconds = :interval_seconds, cron = :cron, timezone = :timezone, wall_clock = :wall_clock, until = :until,
    max_runs = :max_runs, comment = :comment, instructions = :instructions, context_views = :context_views,
    session_config = :session_config, priority = :priority, on_miss = :on_miss,
    nominal_at = :nominal_at, attempt_at = :attempt_at, first_due_at = :first_due_at, is_missed = :is_missed, held_by = :held_by,
    deferrals = :deferrals, version = version + 1, updated_at = :updated_at
WHERE id = :id AND version = :version AND status = 'pending'
RETURNING id;

-- name: mark_wake_running
-- A once-wake whose run was claimed leaves its slot, so that the run can book the next one there.
UPDATE wakes SET status = 'running', version = version + 1, updated_at = :now WHERE id = :id AND status = 'queued';

-- name: settle_wake
-- What a run that ended well means for its wake: a once-wake is over, a recurring one forgets its failures.
UPDATE wakes
SET
    status = CASE WHEN status = 'running' THEN 'fired' ELSE status END,
    reason = CASE WHEN status = 'running' THEN :reason ELSE reason END,
    failures = 0, version = version + 1, updated_at = :now
WHERE id = :id AND (status = 'running' OR failures > 0);

-- name: release_held_wakes
-- Look again at what waits for one reason: a pause was lifted or the bounds were changed.
UPDATE wakes
SET attempt_at = :now, version = version + 1, updated_at = :now
WHERE
    user_id = :user_id AND (agent_id = :agent_id OR CAST(:agent_id AS TEXT) IS NULL)
    AND held_by IS NOT NULL AND held_by <> 'backoff' AND held_by <> 'deferred' AND status = 'pending'
RETURNING id;

-- name: next_attempt
-- When the scheduler must look next: the first wake, the first lease to run out, the first pause to end, the first
-- low-priority run that has waited long enough to be dropped.
SELECT MIN(at) AS at FROM (
    SELECT MIN(attempt_at) AS at FROM wakes WHERE status = 'pending'
    UNION ALL
    SELECT MIN(lease_until) AS at FROM runs WHERE status = 'running'
    UNION ALL
    SELECT MIN(until) AS at FROM pauses WHERE until > :now
    UNION ALL
    SELECT MIN(queued_at) + :shed_after AS at FROM runs WHERE status = 'queued' AND priority = 'low'
) AS moments;

-- name: forget_ephemeral_wakes
-- Schedules that were asked to last only until a restart.
UPDATE wakes
SET status = 'cancelled', reason = 'restarted', version = version + 1, updated_at = :now
WHERE ephemeral = 1 AND status = 'pending' AND created_at < :now
RETURNING id;

-- name: overdue_wakes
-- For the liveness audit: due for a while, and still nothing was decided.
SELECT id FROM wakes WHERE status = 'pending' AND attempt_at < :before ORDER BY attempt_at LIMIT :most;

-- name: orphaned_wakes
-- For the liveness audit: wakes that say a run is under way, and no such run is there.
SELECT w.id FROM wakes w
WHERE
    w.status IN ('queued', 'running') AND w.updated_at < :before
    AND NOT EXISTS (SELECT 1 FROM runs r WHERE r.wake_id = w.id AND r.status IN ('queued', 'running'))
LIMIT :most;
