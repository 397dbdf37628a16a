-- name: claim_booking_key
-- One row for each key: a second transaction waits here for the first, and finds its wake. One from long ago, or from a
-- time ahead of a clock that was set back, is replaced.
INSERT INTO booking_keys (token_id, key, wake_id, created_at) VALUES (:token_id, :key, :wake_id, :now)
ON CONFLICT (token_id, key) DO UPDATE SET
    wake_id = CASE
        WHEN booking_keys.created_at > :since AND booking_keys.created_at < :latest THEN booking_keys.wake_id
        ELSE excluded.wake_id
    END,
    created_at = CASE
        WHEN booking_keys.created_at > :since AND booking_keys.created_at < :latest THEN booking_keys.created_at
        ELSE excluded.created_at
    END
RETURNING wake_id;

-- name: latest_wakes_of_token
SELECT * FROM wakes
WHERE
    token_id = :token_id AND door IN ('mcp', 'v1', 'hook') AND created_at > :since AND created_at <= :until
    AND agent_id = :agent_id AND instructions = :instructions
ORDER BY created_at LIMIT 60;

-- name: delete_expired_booking_keys
DELETE FROM booking_keys WHERE created_at <= :since OR created_at >= :latest;
