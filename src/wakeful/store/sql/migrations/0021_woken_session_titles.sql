-- A session that a wake began got no title if the wake had no label: it gets the first words of the instructions.
UPDATE sessions SET title = (
    SELECT CASE WHEN LENGTH(given.brief) > 60 THEN SUBSTR(given.brief, 1, 59) || '…' ELSE given.brief END
    FROM (
        SELECT TRIM(REPLACE(COALESCE(
            (SELECT w.instructions FROM wakes w WHERE w.id = sessions.origin_wake_id),
            (
                SELECT m.content FROM messages m WHERE m.session_id = sessions.id AND m.role = 'user'
                ORDER BY m.position LIMIT 1
            ),
            ''
        ), '
', ' ')) AS brief
    ) AS given
)
WHERE title = '' AND origin_wake_id IS NOT NULL;
