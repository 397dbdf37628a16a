-- name: add_wakes
-- Book wakes. No row comes back for one whose slot is taken by a live one, whose session has 50 schedules (wakes without
-- a slot) waiting (MAX_LIVE_SCHEDULES in timing/lifecycle.py), or that an agent booked whose self-scheduling is off by now.
INSERT INTO wakes (
    id, kind, agent_id, user_id, session_id, slot, call_type, interval_seconds, cron, timezone, wall_clock, until, max_runs,
    booking, nominal_at, attempt_at, first_due_at, is_missed, held_by, comment, instructions, context_views, session_config, priority, on_miss,
    scheduled_by, booked_by_run, tools, outside_sources, ephemeral, status, reason, error, delivery_phase, created_session_id, deferrals, failures,
    runs_started, muted, ping_to, seen_at, traceparent, door, token_id, token_name, version, created_at, updated_at
)
SELECT
    n.id, n.kind, n.agent_id, n.user_id, n.session_id, n.slot, n.call_type, n.interval_seconds, n.cron, n.timezone,
    n.wall_clock, n.until, n.max_runs, n.booking, n.nominal_at, n.attempt_at, n.first_due_at, n.is_missed, n.held_by,
    n.comment, n.instructions, n.context_views, n.session_config, n.priority, n.on_miss, n.scheduled_by,
    n.booked_by_run, n.tools, n.outside_sources, n.ephemeral, n.status, n.reason, n.error, n.delivery_phase, n.created_session_id, n.deferrals,
    n.failures, n.runs_started, n.muted, n.ping_to, n.seen_at, n.traceparent, n.door, n.token_id, n.token_name, n.version, n.created_at,
    n.updated_at
FROM rows(wakes) AS n
WHERE
    (
        n.slot IS NOT NULL OR 50 > (
            SELECT COUNT(*) FROM wakes w
            WHERE w.session_id = n.session_id AND w.slot IS NULL AND w.status IN ('pending', 'queued')
        )
    )
    AND (n.scheduled_by <> 'agent' OR 1 = (SELECT a.self_scheduling FROM agents a WHERE a.id = n.agent_id))
ON CONFLICT DO NOTHING
/*postgres RETURNING id */;

-- name: wake_by_id
SELECT * FROM wakes WHERE id = :id;

-- name: lock_wake
-- Read a wake in order to change it: no other node changes it before we are done.
SELECT * FROM wakes WHERE id = :id /*postgres FOR UPDATE */;

-- name: live_wake_in_slot
SELECT * FROM wakes WHERE slot = :slot AND status IN ('pending', 'queued') /*postgres FOR UPDATE */;

-- name: wake_in_slot
SELECT * FROM wakes WHERE slot = :slot AND status IN ('pending', 'queued');

-- name: wakes_of_user
-- The soonest first. Each page goes on where the one before ended.
SELECT * FROM wakes
WHERE
    user_id = :user_id
    AND (CAST(:agent_id AS TEXT) IS NULL OR agent_id = :agent_id)
    AND (CAST(:status AS TEXT) IS NULL OR status = :status)
    AND (CAST(:after AS BIGINT) IS NULL OR nominal_at > :after OR (nominal_at = :after AND id > :after_id))
ORDER BY nominal_at, id LIMIT :most;

-- name: live_wakes_of_user
-- The same for those that are still to run: a query of its own, so that the index of those few is used.
SELECT * FROM wakes
WHERE
    user_id = :user_id AND status IN ('pending', 'queued')
    AND (CAST(:agent_id AS TEXT) IS NULL OR agent_id = :agent_id)
    AND (CAST(:status AS TEXT) IS NULL OR status = :status)
    AND (CAST(:after AS BIGINT) IS NULL OR nominal_at > :after OR (nominal_at = :after AND id > :after_id))
ORDER BY nominal_at, id LIMIT :most;

-- name: wakes_of_session
-- The newest first. Each page goes on where the one before ended.
SELECT * FROM wakes
WHERE
    session_id = :session_id
    AND (CAST(:of_scheduler AS BIGINT) IS NULL OR CASE WHEN kind = 'recall' THEN 0 ELSE 1 END = :of_scheduler)
    AND (CAST(:before AS BIGINT) IS NULL OR created_at < :before OR (created_at = :before AND id < :before_id))
ORDER BY created_at DESC, id DESC LIMIT :most;

-- name: live_wakes_of_session
SELECT * FROM wakes
WHERE
    session_id = :session_id AND status IN ('pending', 'queued')
    AND (CAST(:of_scheduler AS BIGINT) IS NULL OR CASE WHEN kind = 'recall' THEN 0 ELSE 1 END = :of_scheduler)
    AND (CAST(:before AS BIGINT) IS NULL OR created_at < :before OR (created_at = :before AND id < :before_id))
ORDER BY created_at DESC, id DESC LIMIT :most;

-- name: due_wakes
-- What the scheduler must decide now, with all it needs to know about the surroundings of each.
-- Another node skips the rows that we hold, so no two decide about the same wake.
SELECT
    w.*,
    COALESCE(a.timezone, u.timezone, 'UTC') AS agent_timezone,
    a.bounds AS agent_bounds,
    a.deleted_at AS agent_deleted_at,
    u.deleted_at AS user_deleted_at,
    (SELECT 1 FROM pauses p WHERE p.user_id = w.user_id AND p.until > w.nominal_at LIMIT 1) AS has_pauses,
    (SELECT r.id FROM runs r WHERE r.session_id = w.session_id AND r.status = 'running') AS busy_run_id,
    CASE WHEN w.call_type = 'recurring' THEN (
        SELECT r.id FROM runs r
        WHERE
            r.session_id = w.session_id AND r.status = 'queued' AND r.wake_id = w.id AND r.trigger = 'wake'
            AND r.started_at IS NULL
        ORDER BY r.nominal_at DESC LIMIT 1
    ) END AS waiting_run_id,
    -- One that a crash cut off has begun too: it takes no further instants along.
    CASE WHEN w.call_type = 'recurring' THEN COALESCE(
        (SELECT r.id FROM runs r WHERE r.session_id = w.session_id AND r.status = 'running' AND r.wake_id = w.id),
        (
            SELECT r.id FROM runs r
            WHERE
                r.session_id = w.session_id AND r.status = 'queued' AND r.wake_id = w.id AND r.started_at IS NOT NULL
            LIMIT 1
        )
    ) END AS running_run_id,
    -- Where the queue stands if nothing waits in it, so that turns_of_agents need not be asked.
    CASE WHEN (SELECT 1 FROM runs r WHERE r.status = 'queued' LIMIT 1) IS NULL THEN COALESCE(
        (SELECT MAX(r.turn) FROM runs r WHERE r.status = 'running'), 0
    ) END AS free_turn
FROM wakes w
JOIN agents a ON a.id = w.agent_id
JOIN users u ON u.id = w.user_id
WHERE w.status = 'pending' AND w.attempt_at <= :now
ORDER BY w.attempt_at, w.created_at, w.id
LIMIT :most OFFSET :skip
/*postgres FOR UPDATE OF w SKIP LOCKED */;

-- name: set_wake_aside
-- Postpone the first due wake after the skipped ones without reading its row: it cannot be fired, and must not hold up the others. A schedule
-- whose session cannot be created fails with its delivery phase.
UPDATE wakes
SET
    attempt_at = :until, error = :error, version = version + 1, updated_at = :now,
    held_by = CASE WHEN kind = 'session' THEN NULL ELSE 'error' END,
    status = CASE WHEN kind = 'session' THEN 'failed' ELSE status END,
    reason = CASE WHEN kind = 'session' THEN 'error' ELSE reason END,
    delivery_phase = CASE WHEN kind = 'session' THEN 'create_session' ELSE delivery_phase END
WHERE id = (
    SELECT w.id FROM wakes w WHERE w.status = 'pending' AND w.attempt_at <= :now
    ORDER BY w.attempt_at, w.created_at, w.id LIMIT 1 OFFSET :skip
    /*postgres FOR UPDATE SKIP LOCKED */
)
RETURNING id, kind, user_id, agent_id, session_id, call_type, nominal_at, status;

-- name: move_wakes
-- Move wakes on, each only if it is still the version that was read.
UPDATE wakes
SET
    nominal_at = n.nominal_at, attempt_at = n.attempt_at, first_due_at = n.first_due_at, is_missed = n.is_missed,
    held_by = n.held_by, status = n.status, reason = n.reason, error = n.error, delivery_phase = n.delivery_phase,
    created_session_id = n.created_session_id, deferrals = n.deferrals, failures = n.failures,
    runs_started = n.runs_started, version = wakes.version + 1, updated_at = n.updated_at
FROM rows(wakes) AS n
WHERE wakes.id = n.id AND wakes.version = n.version
/*postgres RETURNING wakes.id */;

-- name: edit_wake
-- Change what was intended; only a wake that is still the version that was read.
UPDATE wakes
SET
    interval_seconds = :interval_seconds, cron = :cron, timezone = :timezone, wall_clock = :wall_clock, until = :until,
    max_runs = :max_runs, comment = :comment, instructions = :instructions, context_views = :context_views,
    session_config = :session_config, priority = :priority, on_miss = :on_miss, booking = :booking,
    nominal_at = :nominal_at, attempt_at = :attempt_at, first_due_at = :first_due_at, is_missed = :is_missed, held_by = :held_by,
    deferrals = :deferrals, seen_at = :seen_at, version = version + 1, updated_at = :updated_at
WHERE id = :id AND version = :version AND status = 'pending'
RETURNING id;

-- name: mute_wake
-- The version stays: nothing that the scheduler decides hangs on it.
UPDATE wakes SET muted = :muted, seen_at = :now, updated_at = CASE WHEN updated_at > :now THEN updated_at ELSE :now END
WHERE id = :id RETURNING *;

-- name: set_wake_ping
UPDATE wakes
SET
    ping_url = :ping_url, ping_to = :ping_to, seen_at = :now,
    updated_at = CASE WHEN updated_at > :now THEN updated_at ELSE :now END
WHERE id = :id RETURNING *;

-- name: ping_urls_of_wakes
SELECT wakes.id, wakes.ping_url FROM rows(wakes) AS n JOIN wakes ON wakes.id = n.id
WHERE wakes.ping_url IS NOT NULL;

-- name: see_wake
-- A person had a hand in it.
UPDATE wakes SET seen_at = :now WHERE id = :id;

-- name: forgotten_recalls
-- Recurring recalls that no person booked, changed or talked beside since a moment.
SELECT w.id FROM wakes w
WHERE
    w.status = 'pending' AND w.kind = 'recall' AND w.call_type = 'recurring'
    AND (CAST(:id AS TEXT) IS NULL OR w.id = :id)
    AND w.created_at < :before AND (w.seen_at IS NULL OR w.seen_at < :before)
    AND NOT EXISTS (
        SELECT 1 FROM messages m
        WHERE m.session_id = w.session_id AND m.role = 'user' AND m.wake_id IS NULL AND m.created_at >= :before
    )
ORDER BY w.created_at LIMIT :most;

-- name: begin_wakes
-- A once-wake whose run was claimed leaves its slot, so that the run can book the next one there. In PostgreSQL this is
-- a part of claim_runs.
UPDATE wakes SET status = 'running', held_by = NULL, version = wakes.version + 1, updated_at = n.updated_at
FROM rows(wakes) AS n
WHERE wakes.id = n.id AND COALESCE(wakes.status, n.id) = 'queued';  -- so written for the reason in runs.sql

-- name: mark_wakes_finished
-- What a run that ended well means for its wake: a once-wake is over, a recurring one forgets its failures, and comes
-- back from a back-off that they had put it into. Returns those that changed, as they are now; in PostgreSQL also the
-- recurring ones that did not (elsewhere recurring_wakes reads them).
/*postgres WITH settled AS ( */
UPDATE wakes
SET
    status = CASE WHEN wakes.status = 'running' THEN 'fired' ELSE wakes.status END,
    reason = CASE WHEN wakes.status = 'running' THEN n.reason ELSE wakes.reason END,
    attempt_at = CASE
        WHEN wakes.held_by = 'backoff' AND wakes.nominal_at < n.updated_at THEN n.updated_at
        WHEN wakes.held_by = 'backoff' THEN wakes.nominal_at
        ELSE wakes.attempt_at
    END,
    failures = 0, version = wakes.version + 1,
    -- Kept if it lies ahead: so it shows that a wrong clock has planned it (wakes_planned_ahead).
    updated_at = CASE
        WHEN wakes.status = 'pending' AND wakes.updated_at > n.updated_at THEN wakes.updated_at ELSE n.updated_at
    END
FROM rows(wakes) AS n
WHERE wakes.id = n.id AND (wakes.status = 'running' OR wakes.failures > 0)
RETURNING wakes.id, wakes.kind, wakes.session_id, wakes.call_type, wakes.nominal_at, wakes.status, wakes.updated_at
/*postgres ) SELECT * FROM settled UNION ALL
SELECT wakes.id, wakes.kind, wakes.session_id, wakes.call_type, wakes.nominal_at, wakes.status, n.updated_at
FROM rows(wakes) AS n
JOIN wakes ON wakes.id = n.id
WHERE
    COALESCE(wakes.call_type, n.id) = 'recurring'  -- so written for the reason in runs.sql
    AND COALESCE(wakes.status, n.id) <> 'running' AND COALESCE(wakes.failures, n.updated_at) = 0 */;

-- name: recurring_wakes
SELECT wakes.id, wakes.kind, wakes.session_id, wakes.call_type, wakes.nominal_at, wakes.status, n.updated_at
FROM rows(wakes) AS n
JOIN wakes ON wakes.id = n.id
WHERE wakes.call_type = 'recurring';

-- name: wakes_by_ids
SELECT wakes.* FROM rows(wakes) AS n JOIN wakes ON wakes.id = n.id;

-- name: wakes_planned_ahead
-- What a clock that was ahead of ours has planned, deferred or held.
SELECT id FROM wakes
WHERE
    status = 'pending' AND updated_at > :now
    AND (call_type = 'recurring' OR attempt_at > nominal_at OR first_due_at IS NOT NULL)
ORDER BY id;

-- name: release_held_wakes
-- Look again at what waits for one reason: a pause was lifted or the bounds were changed. Never before the planned
-- instant, which lies ahead again if the clock went back.
UPDATE wakes
SET
    attempt_at = CASE WHEN nominal_at > :now THEN nominal_at ELSE :now END,
    version = version + 1, updated_at = :now
WHERE
    user_id = :user_id AND (agent_id = :agent_id OR CAST(:agent_id AS TEXT) IS NULL)
    AND held_by IS NOT NULL AND held_by <> 'backoff' AND held_by <> 'deferred' AND status = 'pending'
RETURNING id;

-- name: next_attempt
-- When the scheduler must look next: the first wake, the first lease of another process to run out (not before leases can
-- be judged), the first pause to end, the first low-priority run that has waited long enough to be dropped, the first
-- session whose wakes are held no longer, the next try of a run whose model did not answer. At once if a wish to stop waits for its run.
SELECT MIN(at) AS at FROM (
    SELECT MIN(attempt_at) AS at FROM wakes WHERE status = 'pending'
    UNION ALL
    SELECT CASE
        WHEN MIN(lease_until) < CAST(:judge_at AS BIGINT) OR MAX(lease_until) > :latest THEN CAST(:judge_at AS BIGINT)
        ELSE MIN(lease_until)
    END AS at FROM runs WHERE status = 'running' AND owner <> :owner
    UNION ALL
    SELECT MIN(until) AS at FROM pauses WHERE until > :now
    UNION ALL
    SELECT MIN(queued_at) + :shed_after AS at FROM runs
    WHERE status = 'queued' AND priority = 'low' AND queued_at + :shed_after > :now
    UNION ALL
    SELECT MIN(held_until) AS at FROM sessions WHERE held_until > :now AND held_until <= :last_hold
    UNION ALL
    SELECT MIN(not_before) AS at FROM runs WHERE status = 'queued' AND not_before > :now
    UNION ALL
    SELECT MIN(requested_at) AS at FROM stop_wishes
) AS moments;

-- name: cancel_ephemeral_wakes
-- Schedules that were asked to last only until a restart.
UPDATE wakes
SET status = 'cancelled', reason = 'restarted', version = version + 1, updated_at = :now
WHERE ephemeral = 1 AND status = 'pending' AND created_at < :now
RETURNING *;

-- name: count_live_wakes
SELECT COUNT(*) AS wakes FROM wakes
WHERE
    user_id = :user_id AND (agent_id = :agent_id OR CAST(:agent_id AS TEXT) IS NULL)
    AND status IN ('pending', 'queued') AND nominal_at < :before;

-- name: left_by_gone
-- Deleted agents and users that still have live wakes; without an agent, all of the user's.
SELECT DISTINCT w.user_id, CASE WHEN u.deleted_at IS NULL THEN w.agent_id END AS agent_id
FROM wakes w JOIN agents a ON a.id = w.agent_id JOIN users u ON u.id = w.user_id
WHERE w.status IN ('pending', 'queued') AND (a.deleted_at IS NOT NULL OR u.deleted_at IS NOT NULL);

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

-- name: wakes_booked_by_runs
-- In the order in which they were booked.
SELECT w.* FROM rows(wakes) AS n JOIN wakes w ON w.booked_by_run = n.booked_by_run
ORDER BY w.created_at, w.id;

-- name: zone_rules
SELECT * FROM zone_rules;

-- name: lock_zone_rules
-- Of two nodes that start together, the second sees what the first has done.
SELECT offsets FROM zone_rules WHERE zone = :zone /*postgres FOR UPDATE */;

-- name: save_zone_rules
INSERT INTO zone_rules (zone, offsets) VALUES (:zone, :offsets)
ON CONFLICT (zone) DO UPDATE SET offsets = excluded.offsets;

-- name: zones_of_wakes
-- Where the clocks decide when a wake is due.
SELECT DISTINCT timezone FROM wakes
WHERE status = 'pending' AND (cron IS NOT NULL OR wall_clock IS NOT NULL) AND timezone IS NOT NULL;

-- name: wakes_by_clocks_of_zone
SELECT * FROM wakes
WHERE status = 'pending' AND (cron IS NOT NULL OR wall_clock IS NOT NULL) AND timezone = :zone
ORDER BY id
/*postgres FOR UPDATE */;
