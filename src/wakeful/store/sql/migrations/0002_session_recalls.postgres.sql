-- The recalls of a session under the names of their door.
CREATE VIEW session_recalls AS
SELECT
    id,
    session_id,
    call_type,
    to_timestamp(nominal_at / 1000000.0) AS trigger_at,
    interval_seconds,
    comment AS internal_comment,
    instructions AS additional_context_message,
    CASE
        WHEN status IN ('pending', 'queued') THEN 'pending'
        WHEN status IN ('running', 'fired') THEN 'fired'
        ELSE 'cancelled'
    END AS status,
    to_timestamp(created_at / 1000000.0) AS created_at,
    to_timestamp(updated_at / 1000000.0) AS updated_at
FROM wakes
WHERE kind = 'recall';
