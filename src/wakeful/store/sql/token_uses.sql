-- name: use_of_token
-- The brake on tokens of programs and on hooks (domain.via.BRAKED): when the use was that came before so many later ones.
-- A booking counts until its first run does. What lies far ahead is from before the clock was set back.
SELECT at FROM (
    SELECT queued_at AS at FROM runs
    WHERE
        token_id = :token_id AND door IN ('mcp', 'v1', 'hook') AND queued_at > :since AND queued_at <= :until
        AND status <> 'skipped'
    UNION ALL
    SELECT created_at AS at FROM wakes
    WHERE
        token_id = :token_id AND door IN ('mcp', 'v1', 'hook') AND created_at > :since AND created_at <= :until
        AND runs_started = 0
) AS uses
ORDER BY at DESC LIMIT 1 OFFSET :later;

-- name: started_by_token
-- How many runs a token or a hook started lately, itself or by its bookings, and when the first of them was.
SELECT COUNT(*) AS started, MIN(queued_at) AS first_at FROM runs
WHERE
    token_id = :token_id AND door IN ('mcp', 'v1', 'hook') AND queued_at > :since AND queued_at <= :until
    AND status <> 'skipped';
