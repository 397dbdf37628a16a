-- The recalls of a session under the names of their door.
CREATE VIEW session_recalls AS
SELECT
    id,
    session_id,
    call_type,
    strftime('%Y-%m-%dT%H:%M:%fZ', nominal_at / 1000000.0, 'unixepoch') AS trigger_at,
    interval_seconds,
    comment AS internal_comment,
    instructions AS additional_context_message,
    CASE
        WHEN status IN ('pending', 'queued') THEN 'pending'
        WHEN status IN ('running', 'fired') THEN 'fired'
        ELSE 'cancelled'
    END AS status,
    strftime('%Y-%m-%dT%H:%M:%fZ', created_at / 1000000.0, 'unixepoch') AS created_at,
    strftime('%Y-%m-%dT%H:%M:%fZ', updated_at / 1000000.0, 'unixepoch') AS updated_at
FROM wakes
WHERE kind = 'recall';
