-- name: use_of_token
-- The brake on tokens of programs and on hooks (core/labels.py, BRAKED): when the use was that came before so many later ones.
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

-- name: side_request_of_token
-- The same for requests for titles, tags and follow-ups, which have no run: the id of their usage names the token.
SELECT u.at FROM tokens t
JOIN agents a ON a.user_id = t.user_id
JOIN run_usage u ON u.agent_id = a.id
WHERE
    t.id = :token_id AND u.at > :since AND u.at <= :until
    AND SUBSTR(u.run_id, 1, LENGTH(t.id) + 6) = 'side/' || t.id || '/'
ORDER BY u.at DESC LIMIT 1 OFFSET :later;

-- name: started_by_token
-- How many runs a token or a hook started lately, itself or by its bookings, and when the first of them was.
SELECT COUNT(*) AS started, MIN(queued_at) AS first_at FROM runs
WHERE
    token_id = :token_id AND door IN ('mcp', 'v1', 'hook') AND queued_at > :since AND queued_at <= :until
    AND status <> 'skipped';
