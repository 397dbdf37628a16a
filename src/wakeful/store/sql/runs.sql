-- PostgreSQL keeps one plan for each of these, made when the tables may still be empty. So a look at other rows is a
-- subquery with LIMIT 1, which it can only answer row by row from an index; and where rows are found by their id, the
-- status is compared as COALESCE(status, that id), which keeps it from looking for the status first.

-- name: add_runs
-- The id is made from wake and planned instant, so a second attempt at the same occurrence changes nothing.
INSERT INTO runs (
    id, agent_id, user_id, session_id, wake_id, kind, trigger, scheduled_by, nominal_at, covers, priority, turn, status,
    reason, note, error, queued_at, started_at, finished_at, owner, lease_until, fence, attempt, has_called,
    lost_starts, is_resuming, not_before, stop_requested_at, node, has_ping, traceparent, door, token_id,
    token_name, outside_sources
)
SELECT
    n.id, n.agent_id, n.user_id, n.session_id, n.wake_id, n.kind, n.trigger, n.scheduled_by, n.nominal_at, n.covers,
    n.priority, n.turn, n.status, n.reason, n.note, n.error, n.queued_at, n.started_at, n.finished_at, n.owner,
    n.lease_until, n.fence, n.attempt, n.has_called, n.lost_starts, n.is_resuming, n.not_before, n.stop_requested_at,
    n.node, n.has_ping, n.traceparent, n.door, n.token_id, n.token_name,
    n.outside_sources
FROM rows(runs) AS n
WHERE TRUE
ON CONFLICT DO NOTHING
/*postgres RETURNING id */;

-- name: fold_into_run
-- A waiting run covers further planned instants of its wake. No row comes back if it was claimed meanwhile, or if someone
-- holds it: other wakes are decided about in the same transaction, and do not wait for that.
UPDATE runs
SET
    covers = covers + :more,
    reason = CASE WHEN reason = 'mcp_elsewhere' THEN reason ELSE :reason END
WHERE
    id = (SELECT r.id FROM runs r WHERE r.id = :id AND r.status = 'queued' /*postgres FOR UPDATE SKIP LOCKED */)
RETURNING id;

-- name: run_by_id
SELECT * FROM runs WHERE id = :id;

-- name: lock_run
SELECT * FROM runs WHERE id = :id /*postgres FOR UPDATE */;

-- name: runs_of_wake
-- In planned order.
SELECT * FROM runs WHERE wake_id = :wake_id ORDER BY nominal_at, queued_at, id LIMIT :most;

-- name: planned_runs_after
-- Only of a wake that a wrong clock has planned: else no instant ahead has a row, but for those a person left out.
SELECT nominal_at FROM runs WHERE wake_id = :wake_id AND nominal_at > :after AND covers > 0;

-- name: last_runs_of_wakes
-- How the latest occurrence of each wake ended.
SELECT r.* FROM rows(runs) AS n
JOIN runs r ON r.id = (
    SELECT l.id FROM runs l WHERE l.wake_id = n.wake_id AND l.finished_at IS NOT NULL
    ORDER BY l.nominal_at DESC, l.queued_at DESC LIMIT 1
);

-- name: failed_run_since
-- Whatever is said in a session after a failure is later than it.
SELECT id FROM runs
WHERE session_id = :session_id AND status IN ('failed', 'interrupted') AND finished_at >= :since LIMIT 1;

-- name: unfinished_run_of_session
-- What keeps a session from taking a user's message: a running run, or a user's run that waits.
SELECT * FROM runs WHERE session_id = :session_id AND status = 'running'
UNION ALL
SELECT * FROM runs WHERE session_id = :session_id AND status = 'queued' AND trigger = 'message'
LIMIT 1;

-- name: next_run_of_session
-- What is running there or, if nothing is, what would be next: people first, then as claim_runs orders them.
SELECT * FROM runs WHERE session_id = :session_id AND status = 'running'
UNION ALL
SELECT * FROM (
    SELECT * FROM runs WHERE session_id = :session_id AND status = 'queued'
    ORDER BY
        CASE trigger WHEN 'message' THEN 0 WHEN 'run_now' THEN 1 ELSE 2 END,
        is_resuming DESC, nominal_at, turn, id
    LIMIT 1
) AS waiting
LIMIT 1;

-- name: run_under_way_in_session
-- What someone who comes in now can watch: a running run, or one that had begun and waits to go on.
SELECT * FROM runs WHERE session_id = :session_id AND status = 'running'
UNION ALL
SELECT * FROM runs WHERE session_id = :session_id AND status = 'queued' AND fence > 0 AND not_before IS NULL
LIMIT 1;

-- name: runs_by_ids
SELECT runs.* FROM rows(runs) AS n JOIN runs ON runs.id = n.id;

-- name: runs_of_user
-- The latest first. Each page goes on where the one before ended.
SELECT * FROM runs
WHERE
    user_id = :user_id
    AND (CAST(:agent_id AS TEXT) IS NULL OR agent_id = :agent_id)
    AND (CAST(:session_id AS TEXT) IS NULL OR session_id = :session_id)
    AND (CAST(:wake_id AS TEXT) IS NULL OR wake_id = :wake_id)
    AND (CAST(:status AS TEXT) IS NULL OR status = :status)
    AND (CAST(:before AS BIGINT) IS NULL OR queued_at < :before OR (queued_at = :before AND id < :before_id))
ORDER BY queued_at DESC, id DESC LIMIT :most;

-- name: claim_runs
-- What people wait for first, and headless runs never hold it back: every queued message whose session is free. Then
-- headless runs, one per session, in the order of their turns, which is fair between agents; a person's Run now goes
-- first in its session, then what a crash had cut off. No wake starts while its session is held for a person; a hold that
-- is too far ahead is from before the clock was set back, and counts no more. One that was first in line for long is
-- held no longer, so nobody who writes without a pause can starve it. Paused agents' wakes take no room, but a run that
-- had begun goes on. After a crash, runs come back one at a time, so that one that kills the process cannot use up the
-- attempts of the others; one that was lost before it reached a call comes after those that got further. On a shared
-- store, runs of agents with MCP servers that this node does not have are left to the nodes that have them; one that
-- waits for a node that is away (reason mcp_elsewhere) holds up no other run. One whose model did not answer waits for
-- its next try, and holds up no other either; a time that is too far ahead is from before the clock was set back. Runs
-- of an agent go where another run of it is running, and for a moment to the live node that has its home. Rows that
-- someone holds are passed over, be it the run or the wake that begins with it: the node may be dead. The outer
-- condition is checked again after a wait for another node's lock.
WITH people AS MATERIALIZED (
    SELECT r.id AS run_id, r.is_resuming AS is_resuming FROM runs r
    WHERE
        r.status = 'queued' AND r.trigger = 'message'
        /*postgres AND (
            SELECT 1 FROM homes h
            WHERE h.agent_id = r.agent_id AND h.holder <> :owner AND (
                (
                    SELECT 1 FROM runs b
                    WHERE b.status = 'running' AND b.agent_id = h.agent_id AND b.owner = h.holder LIMIT 1
                ) IS NOT NULL
                OR r.queued_at > :warm_since AND (
                    SELECT 1 FROM nodes n WHERE n.owner = h.holder AND n.seen_at > :alive_since LIMIT 1
                ) IS NOT NULL
            ) LIMIT 1
        ) IS NULL
        AND (
            SELECT 1 FROM agents g
            WHERE
                g.id = r.agent_id AND g.mcp_servers <> '[]'
                AND NOT (CAST(g.mcp_servers AS jsonb) <@ CAST(:mcp_servers AS jsonb))
            LIMIT 1
        ) IS NULL */
        AND (SELECT 1 FROM runs b WHERE b.session_id = r.session_id AND b.status = 'running' LIMIT 1) IS NULL
        AND (r.is_resuming = 0 OR (
            (SELECT 1 FROM runs c WHERE c.status = 'running' AND c.is_resuming = 1 LIMIT 1) IS NULL
            AND (
                SELECT 1 FROM runs f
                WHERE
                    f.status = 'queued' AND f.trigger = 'message' AND f.is_resuming = 1
                    /*postgres AND f.reason IS DISTINCT FROM 'mcp_elsewhere' */
                    AND (f.lost_starts, f.queued_at, f.id) < (r.lost_starts, r.queued_at, r.id)
                    AND (SELECT 1 FROM runs b WHERE b.session_id = f.session_id AND b.status = 'running' LIMIT 1) IS NULL
                LIMIT 1
            ) IS NULL
        ))
    LIMIT :most_messages
    /*postgres FOR UPDATE OF r SKIP LOCKED */
), headless AS MATERIALIZED (
    SELECT r.id AS run_id, r.wake_id AS wake_id FROM runs r
    WHERE
        r.status = 'queued' AND r.trigger <> 'message'
        /*postgres AND (
            SELECT 1 FROM homes h
            WHERE h.agent_id = r.agent_id AND h.holder <> :owner AND (
                (
                    SELECT 1 FROM runs b
                    WHERE b.status = 'running' AND b.agent_id = h.agent_id AND b.owner = h.holder LIMIT 1
                ) IS NOT NULL
                OR r.queued_at > :warm_since AND (
                    SELECT 1 FROM nodes n WHERE n.owner = h.holder AND n.seen_at > :alive_since LIMIT 1
                ) IS NOT NULL
            ) LIMIT 1
        ) IS NULL
        AND (
            SELECT 1 FROM agents g
            WHERE
                g.id = r.agent_id AND g.mcp_servers <> '[]'
                AND NOT (CAST(g.mcp_servers AS jsonb) <@ CAST(:mcp_servers AS jsonb))
            LIMIT 1
        ) IS NULL */
        AND (SELECT 1 FROM runs b WHERE b.session_id = r.session_id AND b.status = 'running' LIMIT 1) IS NULL
        AND (r.not_before IS NULL OR r.not_before <= :now OR r.not_before > :last_start)
        AND (r.trigger <> 'wake' OR (
            SELECT 1 FROM sessions s
            WHERE
                s.id = r.session_id AND s.held_until > :now AND s.held_until <= :last_hold
                AND (r.queued_at > :held_since OR s.woken_at > :held_since)
            LIMIT 1
        ) IS NULL)
        AND (
            SELECT 1 FROM runs e
            WHERE e.session_id = r.session_id AND e.status = 'queued' AND e.id <> r.id
            AND (e.not_before IS NULL OR e.not_before <= :now)
            /*postgres AND e.reason IS DISTINCT FROM 'mcp_elsewhere' */
            AND (
                e.trigger = 'message' OR (e.trigger = 'run_now' AND r.trigger = 'wake')
                OR (
                    e.trigger = r.trigger
                    AND (-e.is_resuming, e.nominal_at, e.turn, e.id) < (-r.is_resuming, r.nominal_at, r.turn, r.id)
                )
            )
            LIMIT 1
        ) IS NULL
        AND (r.trigger <> 'wake' OR (r.started_at IS NOT NULL AND r.not_before IS NULL) OR (
            SELECT 1 FROM pauses p
            WHERE p.until > :now
            AND p.user_id = r.user_id AND (p.agent_id IS NULL OR p.agent_id = r.agent_id)
            LIMIT 1
        ) IS NULL)
        AND (r.is_resuming = 0 OR (
            (SELECT 1 FROM people WHERE people.is_resuming = 1 LIMIT 1) IS NULL
            AND (SELECT 1 FROM runs c WHERE c.status = 'running' AND c.is_resuming = 1 LIMIT 1) IS NULL
            AND (
                SELECT 1 FROM runs f
                WHERE
                    f.status = 'queued' AND f.trigger <> 'message' AND f.is_resuming = 1
                    /*postgres AND f.reason IS DISTINCT FROM 'mcp_elsewhere' */
                    AND (f.lost_starts, f.turn, f.nominal_at, f.id) < (r.lost_starts, r.turn, r.nominal_at, r.id)
                    AND (SELECT 1 FROM runs b WHERE b.session_id = f.session_id AND b.status = 'running' LIMIT 1) IS NULL
                    -- One that is not the first of its session cannot go, so nobody waits for it.
                    AND (
                        SELECT 1 FROM runs e
                        WHERE e.session_id = f.session_id AND e.status = 'queued' AND e.id <> f.id
                        AND (
                            e.trigger = 'message' OR (e.trigger = 'run_now' AND f.trigger = 'wake')
                            OR (
                                e.trigger = f.trigger AND e.is_resuming = 1
                                AND (e.nominal_at, e.turn, e.id) < (f.nominal_at, f.turn, f.id)
                            )
                        )
                        LIMIT 1
                    ) IS NULL
                LIMIT 1
            ) IS NULL
        ))
    ORDER BY r.turn, r.nominal_at, r.id
    LIMIT :most_headless
    /*postgres FOR UPDATE OF r SKIP LOCKED */
), chosen AS (
    SELECT people.run_id AS run_id FROM people UNION ALL SELECT headless.run_id AS run_id FROM headless
    /*postgres
        LEFT JOIN LATERAL (
            SELECT w.id FROM wakes w WHERE w.id = headless.wake_id AND w.status = 'queued' FOR UPDATE SKIP LOCKED
        ) AS held ON TRUE
    WHERE
        held.id IS NOT NULL
        OR (SELECT w.status FROM wakes w WHERE w.id = headless.wake_id LIMIT 1) IS DISTINCT FROM 'queued'
    */
)
/*postgres , claimed AS ( */
UPDATE runs
SET
    status = 'running', owner = :owner, lease_until = :lease_until, fence = fence + 1, attempt = attempt + 1,
    has_called = 0, not_before = NULL,
    reason = NULLIF(/*postgres NULLIF( */runs.reason/*postgres , 'mcp_elsewhere') */, 'outage'),
    node = :node,
    -- Not before it was queued, though the clock of the node that queued it may be a little ahead of ours.
    started_at = COALESCE(started_at, CASE WHEN queued_at > :now THEN queued_at ELSE :now END)
FROM chosen
WHERE runs.id = chosen.run_id AND COALESCE(runs.status, chosen.run_id) = 'queued'
RETURNING *, (SELECT a.run_limit_seconds FROM agents a WHERE a.id = runs.agent_id) AS run_limit_seconds
/*postgres ), began AS (
    -- As begin_wakes does, in the same round trip.
    UPDATE wakes SET status = 'running', held_by = NULL, version = wakes.version + 1, updated_at = :now FROM claimed
    WHERE wakes.id = claimed.wake_id AND COALESCE(wakes.status, claimed.wake_id) = 'queued'
), moved AS (
    -- With the run its agent's home: the node that had it can no longer write. One that is being saved now is passed
    -- over, and taken by the first use of it.
    UPDATE homes SET holder = :owner, fence = homes.fence + 1, busy_until = NULL
    WHERE homes.agent_id IN (
        SELECT h.agent_id FROM homes h
        WHERE h.agent_id IN (SELECT claimed.agent_id FROM claimed) AND h.holder IS DISTINCT FROM :owner
        FOR UPDATE SKIP LOCKED
    )
) SELECT * FROM claimed */;

-- name: turns_of_agents
-- Where the queue stands (the latest turn that was taken, or else the first that waits), and for each agent the turn of
-- its newest run, if that one still waits.
SELECT
    n.agent_id AS agent_id,
    COALESCE(
        (SELECT MAX(turn) FROM runs WHERE status = 'running'), (SELECT MIN(turn) FROM runs WHERE status = 'queued'), 0
    ) AS current_turn,
    (
        SELECT CASE WHEN r.status = 'queued' THEN r.turn END FROM runs r
        WHERE r.agent_id = n.agent_id ORDER BY r.queued_at DESC, r.turn DESC LIMIT 1
    ) AS last_turn
FROM rows(runs) AS n;

-- name: waiting_work
-- Counts of waiting work, for the metrics.
SELECT
    (SELECT COUNT(*) FROM wakes WHERE status = 'pending') AS pending_wakes,
    (SELECT MIN(attempt_at) FROM wakes WHERE status = 'pending') AS next_wake_at,
    (SELECT COUNT(*) FROM runs WHERE status = 'queued') AS queued_runs,
    (SELECT COUNT(*) FROM runs WHERE status = 'running') AS running_runs,
    (
        SELECT COUNT(*) FROM approvals a JOIN runs r ON r.id = a.run_id
        WHERE a.status = 'pending' AND r.status IN ('queued', 'running')
    ) AS approvals;

-- name: renew_leases
-- The heartbeat. Also of a lease that has run out, as when someone set the clock: the run is ours until another node has
-- taken it back.
UPDATE runs SET lease_until = :lease_until
WHERE status = 'running' AND owner = :owner
RETURNING id, fence, stop_requested_at;

-- name: runs_of_owner
-- What a process holds.
SELECT * FROM runs WHERE status = 'running' AND owner = :owner;

-- name: stops_of_owner
-- Which of our running runs someone asked to stop.
SELECT id FROM runs WHERE status = 'running' AND owner = :owner AND stop_requested_at IS NOT NULL;

-- name: finish_runs
-- Only the owner may finish, until another node has taken the run back. No row comes back for a stale one.
UPDATE runs
SET
    status = n.status, reason = COALESCE(n.reason, runs.reason), note = n.note, error = n.error, finished_at = n.finished_at,
    lease_until = NULL, is_resuming = 0
FROM rows(runs) AS n
WHERE
    runs.id = n.id AND COALESCE(runs.status, n.id) = 'running' AND runs.owner = n.owner AND runs.fence = n.fence
/*postgres RETURNING runs.id */;

-- name: release_runs
-- Give runs back untried: the process is going down in good order.
UPDATE runs
SET status = 'queued', owner = NULL, lease_until = NULL, attempt = runs.attempt - 1
FROM rows(runs) AS n
WHERE runs.id = n.id AND COALESCE(runs.status, n.id) = 'running' AND runs.owner = n.owner AND runs.fence = n.fence
/*postgres RETURNING runs.id */;

-- name: hold_run
-- Its model did not answer, which is no fault of the run: it comes back later, and the crashed ones do not wait for it.
UPDATE runs
SET
    status = 'queued', reason = 'outage', not_before = :until, owner = NULL, lease_until = NULL, attempt = attempt - 1,
    is_resuming = 0
WHERE id = :id AND status = 'running' AND owner = :owner AND fence = :fence
RETURNING *;

-- name: expired_runs
-- Runs whose owner is gone: the lease ran out, or reaches too far ahead since the clock was set back, or (embedded store,
-- at start) it was another process's. Never our own: we know what we are at work on.
SELECT * FROM runs
WHERE
    status = 'running' AND owner <> :owner
    AND (lease_until <= :now OR lease_until > :latest OR CAST(:of_everyone AS BIGINT) = 1)
ORDER BY nominal_at LIMIT :most OFFSET :skip
/*postgres FOR UPDATE SKIP LOCKED */;

-- name: recover_run
-- Back into the queue for another attempt, or ended, as the rule said.
UPDATE runs
SET
    status = :status, reason = :reason, error = :error, owner = NULL, lease_until = NULL, finished_at = :finished_at,
    is_resuming = :is_resuming, attempt = :attempt, lost_starts = :lost_starts
WHERE id = :id AND status = 'running' AND fence = :fence
RETURNING id;

-- name: holds_lease
-- Whether a run is still ours before something of it is saved; the row stays locked until it is.
SELECT id FROM runs
WHERE id = :id AND status = 'running' AND owner = :owner AND fence = :fence
/*postgres FOR UPDATE */;

-- name: record_calls
-- These starts are about to make their first model or tool call, so they count as attempts from now on. The next attempt
-- of a traced run links to this one.
UPDATE runs SET has_called = 1, traceparent = n.traceparent
FROM rows(runs) AS n
WHERE runs.id = n.id AND COALESCE(runs.status, n.id) = 'running' AND runs.owner = n.owner AND runs.fence = n.fence
/*postgres RETURNING runs.id */;

-- name: leave_probation
-- A run that came back from a crash has saved a step, so it is not what killed the process.
UPDATE runs SET is_resuming = 0 WHERE id = :id AND is_resuming = 1 RETURNING id;

-- name: mark_run
-- Where the data came from that a run has read and its user did not write.
UPDATE runs SET outside_sources = :outside_sources WHERE id = :id;

-- name: sources_of_session
-- Those of the runs of a session, the earliest first.
SELECT outside_sources FROM runs WHERE session_id = :session_id AND outside_sources <> '[]'
GROUP BY outside_sources ORDER BY MIN(queued_at);

-- name: request_stop
-- Stop is a row, so every node sees it.
UPDATE runs SET stop_requested_at = :now
WHERE id = :id AND status = 'running' AND stop_requested_at IS NULL
RETURNING id;

-- name: save_stop_request
INSERT INTO stop_wishes (run_id, requested_at) VALUES (:run_id, :now) ON CONFLICT DO NOTHING;

-- name: free_stop_requests
-- Wishes to stop whose run nobody holds any more; its row is held for us until the wish is carried out.
SELECT runs.* FROM stop_wishes w JOIN runs ON runs.id = w.run_id
LIMIT :most
/*postgres FOR UPDATE OF runs SKIP LOCKED */;

-- name: delete_stop_request
DELETE FROM stop_wishes WHERE run_id = :run_id;

-- name: delete_lost_stop_requests
-- Of runs that have been deleted.
DELETE FROM stop_wishes WHERE (SELECT 1 FROM runs r WHERE r.id = stop_wishes.run_id LIMIT 1) IS NULL;

-- name: continue_run
-- A person lets a run go on that had ended before its work was done. It comes first, and its attempts count anew.
UPDATE runs
SET
    status = 'queued', reason = 'continued', error = NULL, finished_at = NULL, owner = NULL, lease_until = NULL,
    attempt = 0, lost_starts = 0, turn = 0, is_resuming = 0, not_before = NULL, stop_requested_at = NULL
WHERE id = :id AND status IN ('interrupted', 'failed', 'stopped')
RETURNING *;

-- name: end_queued_runs
-- Runs of wakes that had not begun end with them.
UPDATE runs
SET status = n.status, reason = n.reason, finished_at = n.finished_at
FROM rows(runs) AS n
WHERE runs.wake_id = n.wake_id AND COALESCE(runs.status, n.wake_id) = 'queued'
RETURNING runs.id;

-- name: end_queued_run
UPDATE runs
SET status = :status, reason = :reason, finished_at = :now
WHERE id = :id AND status = 'queued'
RETURNING id;

-- name: hurry_runs
-- A person's Run now: no pause holds it, and nobody's turn comes before.
UPDATE runs SET trigger = 'run_now', turn = 0, not_before = NULL WHERE wake_id = :wake_id AND status = 'queued' RETURNING *;

-- name: shed_low_runs
-- Low priority gives way: no slot was free for it in time. A run that waits for its session or a pause is left alone, and
-- so is one that had its slot and was cut off.
UPDATE runs
SET status = 'skipped', reason = 'no_slot', finished_at = :now
WHERE
    status = 'queued' AND priority = 'low' AND trigger = 'wake' AND queued_at <= :before AND started_at IS NULL
    /*postgres AND reason IS DISTINCT FROM 'mcp_elsewhere' */
    AND NOT EXISTS (SELECT 1 FROM runs b WHERE b.session_id = runs.session_id AND b.status = 'running')
    AND NOT EXISTS (
        SELECT 1 FROM pauses p
        WHERE p.until > :before
        AND p.user_id = runs.user_id AND (p.agent_id IS NULL OR p.agent_id = runs.agent_id)
    )
RETURNING *;

-- name: started_by_agent
-- The runaway brake: how many runs an agent's own bookings began lately, and when the first of them was. What lies far
-- ahead is from before the clock was set back.
SELECT COUNT(*) AS started, MIN(queued_at) AS first_at FROM runs
WHERE
    agent_id = :agent_id AND queued_at > :since AND queued_at <= :until AND trigger = 'wake' AND scheduled_by = 'agent' AND status <> 'skipped';

-- name: next_runs_today
-- The daily cap: how many of its own next runs an agent has begun since midnight in its zone.
SELECT COUNT(*) AS started FROM runs
WHERE
    agent_id = :agent_id AND queued_at >= :since AND queued_at <= :until AND trigger = 'wake' AND kind = 'next_run'
    AND scheduled_by = 'agent' AND status <> 'skipped';

-- name: own_next_run_under_way
-- Another run of the agent's own booking that has not ended, and may book the next one yet.
SELECT id FROM runs
WHERE
    agent_id = :agent_id AND queued_at > :long_ago AND status IN ('queued', 'running') AND kind = 'next_run'
    AND scheduled_by = 'agent' AND id <> :id
LIMIT 1;

-- name: last_ended_run
-- How the latest of an agent's runs of one kind ended; of one wake alone, if it is named.
SELECT * FROM runs
WHERE
    agent_id = :agent_id AND kind = :kind AND queued_at > :since AND finished_at IS NOT NULL AND id <> :but_run
    AND (CAST(:wake_id AS TEXT) IS NULL OR wake_id = :wake_id)
ORDER BY queued_at DESC, nominal_at DESC LIMIT 1;

-- name: user_is_talking
-- A user's run is under way, or the user said something a moment ago.
SELECT id FROM runs
WHERE
    agent_id = :agent_id AND trigger = 'message'
    AND (status IN ('queued', 'running') AND queued_at > :long_ago OR queued_at > :since AND queued_at <= :until)
LIMIT 1;

-- name: stuck_runs
-- A lease of another process that ran out, or reaches too far ahead, and nobody took the run back.
SELECT id FROM runs
WHERE status = 'running' AND owner <> :owner AND (lease_until <= :before OR lease_until > :latest)
ORDER BY lease_until LIMIT :most;

-- name: left_behind
-- Whether there are leases of other processes that ran out, or reach too far ahead, and whether there are wishes to stop that wait for their run.
SELECT
    (
        SELECT id FROM runs
        WHERE status = 'running' AND owner <> :owner AND (lease_until <= :now OR lease_until > :latest) LIMIT 1
    ) AS run_id,
    (SELECT run_id FROM stop_wishes LIMIT 1) AS wish_run_id;

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

-- name: subjects_of_runs
-- The label and the beginning of the text that each run was given: as it was sent, or as its wake has it. A message of
-- the transcript that a wake brought along (preloaded) is not that text.
SELECT
    r.id AS id, COALESCE(w.comment, '') AS label,
    SUBSTR(COALESCE(
        (
            SELECT m.content FROM messages m
            WHERE m.run_id = r.id AND m.role = 'user' AND COALESCE(m.source, '') <> 'preloaded'
            ORDER BY m.position LIMIT 1
        ),
        w.instructions, ''
    ), 1, 200) AS brief
FROM rows(runs) AS n JOIN runs r ON r.id = n.id LEFT JOIN wakes w ON w.id = r.wake_id;
