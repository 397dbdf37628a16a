-- name: add_run
-- The id is made from wake and planned instant, so a second attempt at the same occurrence changes nothing.
INSERT INTO runs (
    id, agent_id, user_id, session_id, wake_id, kind, trigger, scheduled_by, nominal_at, covers, priority, status, reason,
    error, queued_at, started_at, finished_at, owner, lease_until, fence, attempt, is_resuming, stop_requested_at
)
VALUES (
    :id, :agent_id, :user_id, :session_id, :wake_id, :kind, :trigger, :scheduled_by, :nominal_at, :covers, :priority, :status,
    :reason, :error, :queued_at, :started_at, :finished_at, :owner, :lease_until, :fence, :attempt, :is_resuming,
    :stop_requested_at
)
ON CONFLICT DO NOTHING
RETURNING id;

-- name: fold_into_run
-- A waiting run covers further planned instants of its wake. No row comes back if it was claimed meanwhile.
UPDATE runs SET covers = covers + :more, reason = :reason WHERE id = :id AND status = 'queued' RETURNING id;

-- name: run_by_id
SELECT * FROM runs WHERE id = :id;

-- name: lock_run
SELECT * FROM runs WHERE id = :id /*postgres FOR UPDATE */;

-- name: runs_of_wake
-- In planned order.
SELECT * FROM runs WHERE wake_id = :wake_id ORDER BY nominal_at, queued_at, id LIMIT :most;

-- name: unfinished_run_of_session
-- What keeps a session from taking a user's message: a running run, or a user's run that waits.
SELECT * FROM runs
WHERE session_id = :session_id AND (status = 'running' OR (status = 'queued' AND trigger = 'message'))
ORDER BY status DESC LIMIT 1;

-- name: claim_user_runs
-- People wait for these, so headless runs never hold them back: every queued one whose session is free.
UPDATE runs
SET
    status = 'running', owner = :owner, lease_until = :lease_until, fence = fence + 1, attempt = attempt + 1,
    started_at = COALESCE(started_at, :now)
WHERE
    status = 'queued'
    AND id IN (
        SELECT r.id FROM runs r
        WHERE
            r.status = 'queued' AND r.trigger = 'message'
            AND NOT EXISTS (SELECT 1 FROM runs b WHERE b.session_id = r.session_id AND b.status = 'running')
            AND NOT EXISTS (
                SELECT 1 FROM runs e
                WHERE e.session_id = r.session_id AND e.status = 'queued' AND e.trigger = 'message'
                AND (e.queued_at, e.id) < (r.queued_at, r.id)
            )
        LIMIT :most
        /*postgres FOR UPDATE OF r SKIP LOCKED */
    )
RETURNING *;

-- name: claim_headless_runs
-- One per session, in turn between agents: an agent's first run comes before any other agent's second. Paused agents'
-- wakes take no room. After a crash, runs come back one at a time, so that one that kills the process cannot use up the
-- attempts of the others. The outer condition is checked again after a wait for another node's lock.
UPDATE runs
SET
    status = 'running', owner = :owner, lease_until = :lease_until, fence = fence + 1, attempt = attempt + 1,
    started_at = COALESCE(started_at, :now)
WHERE
    status = 'queued'
    AND id IN (
        SELECT id FROM runs
        WHERE status = 'queued' AND id IN (
            SELECT id FROM (
                SELECT
                    r.id, r.nominal_at, r.queued_at, r.is_resuming,
                    ROW_NUMBER() OVER (PARTITION BY r.session_id ORDER BY r.nominal_at, r.queued_at, r.id) AS session_turn,
                    ROW_NUMBER() OVER (PARTITION BY r.is_resuming ORDER BY r.nominal_at, r.queued_at, r.id) AS resume_turn,
                    ROW_NUMBER() OVER (PARTITION BY r.agent_id ORDER BY r.nominal_at, r.queued_at, r.id)
                    + COALESCE(working.runs, 0) AS agent_turn
                FROM runs r
                LEFT JOIN (
                    SELECT agent_id, COUNT(*) AS runs FROM runs
                    WHERE status = 'running' AND trigger <> 'message' GROUP BY agent_id
                ) AS working ON working.agent_id = r.agent_id
                WHERE
                    r.status = 'queued' AND r.trigger <> 'message'
                    AND NOT EXISTS (
                        SELECT 1 FROM runs b
                        WHERE b.session_id = r.session_id
                        AND (b.status = 'running' OR (b.status = 'queued' AND b.trigger = 'message'))
                    )
                    AND NOT (r.trigger = 'wake' AND EXISTS (
                        SELECT 1 FROM pauses p
                        WHERE p.until > :now AND p.started_at <= :now
                        AND p.user_id = r.user_id AND (p.agent_id IS NULL OR p.agent_id = r.agent_id)
                    ))
            ) AS candidates
            WHERE
                session_turn = 1
                AND (is_resuming = 0 OR (
                    resume_turn = 1 AND NOT EXISTS (SELECT 1 FROM runs c WHERE c.status = 'running' AND c.is_resuming = 1)
                ))
            ORDER BY agent_turn, nominal_at, queued_at, id
            LIMIT :most
        )
        /*postgres FOR UPDATE SKIP LOCKED */
    )
RETURNING *;

-- name: renew_leases
-- The heartbeat. A lease that has run out is not renewed: someone else may have the run by now.
UPDATE runs SET lease_until = :lease_until
WHERE status = 'running' AND owner = :owner AND lease_until > :now
RETURNING id, fence, stop_requested_at;

-- name: stops_of_owner
-- Which of our running runs someone asked to stop.
SELECT id FROM runs WHERE status = 'running' AND owner = :owner AND stop_requested_at IS NOT NULL;

-- name: finish_run
-- Only the owner of a living lease may finish. No row comes back for a stale one.
UPDATE runs
SET status = :status, reason = COALESCE(:reason, reason), error = :error, finished_at = :now, lease_until = NULL, is_resuming = 0
WHERE id = :id AND status = 'running' AND owner = :owner AND fence = :fence AND lease_until > :now
RETURNING id;

-- name: release_run
-- Give a run back untried: the process is going down in good order.
UPDATE runs
SET status = 'queued', owner = NULL, lease_until = NULL, attempt = attempt - 1
WHERE id = :id AND status = 'running' AND owner = :owner AND fence = :fence
RETURNING id;

-- name: expired_runs
-- Runs whose owner is gone: the lease ran out, or (embedded store, at start) it was another process's.
SELECT * FROM runs
WHERE status = 'running' AND (lease_until <= :now OR owner <> COALESCE(:only_owner, owner))
ORDER BY nominal_at LIMIT :most
/*postgres FOR UPDATE SKIP LOCKED */;

-- name: recover_run
-- Back into the queue for another attempt, or ended, as the rule said.
UPDATE runs
SET
    status = :status, reason = :reason, error = :error, owner = NULL, lease_until = NULL, finished_at = :finished_at,
    is_resuming = :is_resuming
WHERE id = :id AND status = 'running' AND fence = :fence
RETURNING id;

-- name: holds_lease
-- Whether a run is still ours before something of it is saved; the row stays locked until it is.
SELECT id FROM runs
WHERE id = :id AND status = 'running' AND owner = :owner AND fence = :fence AND lease_until > :now
/*postgres FOR UPDATE */;

-- name: leave_probation
-- A run that came back from a crash has saved a step, so it is not what killed the process.
UPDATE runs SET is_resuming = 0 WHERE id = :id AND is_resuming = 1 RETURNING id;

-- name: request_stop
-- Stop is a row, so every node sees it.
UPDATE runs SET stop_requested_at = :now
WHERE id = :id AND status = 'running' AND stop_requested_at IS NULL
RETURNING id;

-- name: end_queued_runs
-- Runs of a wake that had not begun end with it.
UPDATE runs
SET status = :status, reason = :reason, finished_at = :now
WHERE wake_id = :wake_id AND status = 'queued'
RETURNING id;

-- name: end_queued_run
UPDATE runs
SET status = :status, reason = :reason, finished_at = :now
WHERE id = :id AND status = 'queued'
RETURNING id;

-- name: shed_low_runs
-- Low priority gives way: no slot was free for it in time. A run that waits for its session or a pause is left alone.
UPDATE runs
SET status = 'skipped', reason = 'no_slot', finished_at = :now
WHERE
    status = 'queued' AND priority = 'low' AND trigger = 'wake' AND queued_at <= :before
    AND NOT EXISTS (SELECT 1 FROM runs b WHERE b.session_id = runs.session_id AND b.status = 'running')
    AND NOT EXISTS (
        SELECT 1 FROM pauses p
        WHERE p.until > :now AND p.started_at <= :now
        AND p.user_id = runs.user_id AND (p.agent_id IS NULL OR p.agent_id = runs.agent_id)
    )
RETURNING *;

-- name: started_by_agent
-- The runaway brake: how many runs an agent's own bookings began lately, and when the first of them was.
SELECT COUNT(*) AS started, MIN(queued_at) AS first_at FROM runs
WHERE agent_id = :agent_id AND queued_at > :since AND trigger = 'wake' AND scheduled_by = 'agent' AND status <> 'skipped';

-- name: next_runs_today
-- The daily cap: how many of its own next runs an agent has begun since midnight in its zone.
SELECT COUNT(*) AS started FROM runs
WHERE
    agent_id = :agent_id AND queued_at >= :since AND trigger = 'wake' AND kind = 'next_run' AND scheduled_by = 'agent'
    AND status <> 'skipped';

-- name: user_is_talking
-- A user's run is under way, or the user said something a moment ago.
SELECT id FROM runs
WHERE
    agent_id = :agent_id AND trigger = 'message'
    AND (status IN ('queued', 'running') AND queued_at > :long_ago OR queued_at > :since)
LIMIT 1;

-- name: stuck_runs
-- For the liveness audit: a lease that ran out and nobody took the run back.
SELECT id FROM runs WHERE status = 'running' AND lease_until < :before ORDER BY lease_until LIMIT :most;

-- name: old_skipped_runs
-- For retention: wakes with more than one skipped row from long ago.
SELECT wake_id, MIN(nominal_at) AS first_at, SUM(covers) AS covers, COUNT(*) AS kept FROM runs
WHERE wake_id IS NOT NULL AND status = 'skipped' AND finished_at < :before
GROUP BY wake_id HAVING COUNT(*) > 1 LIMIT :most;

-- name: delete_skipped_runs
DELETE FROM runs
WHERE wake_id = :wake_id AND status = 'skipped' AND finished_at < :before AND nominal_at > :first_at
RETURNING id;

-- name: cover_more
UPDATE runs SET covers = :covers, reason = 'rolled_up'
WHERE wake_id = :wake_id AND status = 'skipped' AND finished_at < :before AND nominal_at = :first_at;
