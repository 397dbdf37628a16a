-- name: runs_of_agents
-- Number of runs of each agent.
SELECT agent_id, COUNT(*) AS runs FROM runs GROUP BY agent_id;

-- name: named_agents
SELECT a.id AS id, a.name AS name, u.name AS user_name FROM agents a JOIN users u ON u.id = a.user_id
WHERE a.deleted_at IS NULL;

-- name: all_users
SELECT id FROM users;

-- name: old_runs
-- Runs of a user that ended long ago, the oldest first, from a place on. The last one of a wake that is not over stays:
-- the lists of wakes show how it ended. So does the last marked one of a session, because its transcript stays.
SELECT r.id AS id, r.wake_id AS wake_id, r.queued_at AS queued_at FROM runs r
WHERE
    r.user_id = :user_id AND r.queued_at < :before AND (r.queued_at, r.id) > (:after, :after_id)
    AND r.finished_at < :before AND r.status NOT IN ('queued', 'running')
    AND (
        r.wake_id IS NULL
        OR (SELECT 1 FROM wakes w WHERE w.id = r.wake_id AND w.status IN ('pending', 'queued', 'running') LIMIT 1) IS NULL
        OR (SELECT 1 FROM runs l WHERE l.wake_id = r.wake_id AND l.nominal_at > r.nominal_at LIMIT 1) IS NOT NULL
    )
    AND (
        r.outside_sources = '[]'
        OR (SELECT 1 FROM sessions s WHERE s.id = r.session_id LIMIT 1) IS NULL
        OR (
            SELECT 1 FROM runs l
            WHERE
                l.session_id = r.session_id AND l.outside_sources <> '[]' AND l.started_at IS NOT NULL
                AND (l.queued_at, l.id) > (r.queued_at, r.id)
            LIMIT 1
        ) IS NOT NULL
    )
ORDER BY r.queued_at, r.id LIMIT :most;

-- name: delete_run
-- One that a person continued meanwhile stays.
DELETE FROM runs WHERE id = :id AND finished_at < :before AND status NOT IN ('queued', 'running') RETURNING id;

-- name: delete_usage_of_run
DELETE FROM run_usage WHERE run_id = :run_id;

-- name: delete_decisions_of_run
DELETE FROM decisions WHERE wake_id = :wake_id AND run_id = :run_id;

-- name: delete_ended_wake
-- A wake that is over and has no run left, with what was decided about it.
DELETE FROM wakes
WHERE
    id = :id AND status NOT IN ('pending', 'queued', 'running')
    AND (SELECT 1 FROM runs r WHERE r.wake_id = wakes.id LIMIT 1) IS NULL
RETURNING id;

-- name: delete_decisions_of_wake
DELETE FROM decisions WHERE wake_id = :wake_id;

-- name: old_sessions
-- Sessions of a user that a wake opened, in which no person wrote, nothing was said for long, and nothing is planned.
SELECT s.id AS id FROM sessions s
WHERE
    s.user_id = :user_id AND s.updated_at < :before AND s.origin_wake_id IS NOT NULL
    AND (
        SELECT 1 FROM messages m
        WHERE m.session_id = s.id AND m.role = 'user' AND m.wake_id IS NULL LIMIT 1
    ) IS NULL
    AND (SELECT 1 FROM runs r WHERE r.session_id = s.id AND r.status = 'queued' LIMIT 1) IS NULL
    AND (SELECT 1 FROM runs r WHERE r.session_id = s.id AND r.status = 'running' LIMIT 1) IS NULL
    AND (
        SELECT 1 FROM wakes w WHERE w.session_id = s.id AND w.status IN ('pending', 'queued', 'running') LIMIT 1
    ) IS NULL
ORDER BY s.updated_at LIMIT :most;
