-- name: outlets_of_user
-- The channels of a person that are on, and the browsers. Whether a login is still valid is looked at when it is sent.
SELECT 'channel' AS kind, id, name FROM channels WHERE user_id = :user_id AND enabled = 1
UNION ALL
SELECT 'push' AS kind, id, name FROM push_subscriptions WHERE user_id = :user_id
ORDER BY kind, name;

-- name: add_outgoing
-- One for each target and thing it is about, however often it is noted.
INSERT INTO outgoing (
    id, kind, target, event, about, body, status, attempts, next_at, taken_at, abandoned, last_status, last_error,
    created_at, settled_at
)
SELECT
    n.id, n.kind, n.target, n.event, n.about, n.body, n.status, n.attempts, n.next_at, n.taken_at, n.abandoned,
    n.last_status, n.last_error, n.created_at, n.settled_at
FROM rows(outgoing) AS n
WHERE TRUE
ON CONFLICT DO NOTHING
/*postgres RETURNING id */;

-- name: lock_outgoing
-- Nodes claim one after the other: two at once would not see which targets the other is about to send to.
SELECT 1 AS is_locked /*postgres FROM pg_advisory_xact_lock(2003134838) */;

-- name: claim_outgoing
-- Messages that are due, unless a node is sending to the same target. A claim from before `left_behind` was abandoned, and
-- so was one after `latest`: the clock was set back since.
UPDATE outgoing
SET abandoned = abandoned + CASE WHEN taken_at IS NULL THEN 0 ELSE 1 END, taken_at = :now
WHERE
    id IN (
        SELECT o.id FROM outgoing o
        WHERE
            o.kind = :kind AND o.status = 'pending' AND o.next_at <= :now
            AND (o.taken_at IS NULL OR o.taken_at < :left_behind OR o.taken_at > :latest)
            AND (
                SELECT 1 FROM outgoing b
                WHERE b.target = o.target AND b.taken_at >= :left_behind AND b.taken_at <= :latest LIMIT 1
            ) IS NULL
        ORDER BY o.next_at LIMIT :most
    )
RETURNING *;

-- name: renew_outgoing
-- A claim that has waited goes on, unless another node has made it meanwhile.
UPDATE outgoing SET taken_at = :now WHERE id = :id AND taken_at = :taken_at RETURNING id;

-- name: next_outgoing
-- When the first one is or was due, and when the next one will be. One that is due may wait for its target.
SELECT
    (SELECT MIN(next_at) FROM outgoing WHERE kind = :kind AND status = 'pending') AS first_at,
    (SELECT MIN(next_at) FROM outgoing WHERE kind = :kind AND status = 'pending' AND next_at > :now) AS next_at;

-- name: outgoing_by_id
SELECT * FROM outgoing WHERE id = :id AND target = :target;

-- name: outgoing_of_target
-- The latest first. Each page goes on where the one before ended.
SELECT * FROM outgoing
WHERE
    target = :target
    AND (CAST(:before AS BIGINT) IS NULL OR created_at < :before OR (created_at = :before AND id < :before_id))
ORDER BY created_at DESC, id DESC LIMIT :most;

-- name: save_outgoing
-- With `claimed_at` only if that claim still holds.
UPDATE outgoing
SET
    status = :status, attempts = :attempts, next_at = :next_at, taken_at = :taken_at, abandoned = :abandoned,
    last_status = :last_status, last_error = :last_error, settled_at = :settled_at
WHERE id = :id AND (CAST(:claimed_at AS BIGINT) IS NULL OR taken_at = :claimed_at);

-- name: delete_outgoing
DELETE FROM outgoing WHERE id = :id AND taken_at = :claimed_at;

-- name: cancel_outgoing
-- Give up what waits. One that is being sent just now gets its result all the same.
UPDATE outgoing SET status = 'cancelled', next_at = NULL, settled_at = :now
WHERE target = :target AND status = 'pending';

-- name: delete_outgoing_of_target
DELETE FROM outgoing WHERE target = :target;

-- name: delete_old_outgoing
DELETE FROM outgoing WHERE created_at < :before;
