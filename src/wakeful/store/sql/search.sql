-- name: add_search_texts
-- One whose message is there already stays as it is.
INSERT INTO search_texts (user_id, session_id, message_id, terms)
SELECT n.user_id, n.session_id, n.message_id, n.terms FROM rows(search_texts) AS n
WHERE TRUE
ON CONFLICT DO NOTHING;

-- name: add_earlier_search_texts
-- Texts from before the upgrade, but for those of sessions that were deleted meanwhile.
INSERT INTO search_texts (number, user_id, session_id, message_id, terms)
SELECT n.number, n.user_id, n.session_id, n.message_id, n.terms
FROM rows(search_texts) AS n JOIN sessions s ON s.id = n.session_id
WHERE TRUE
/*postgres FOR KEY SHARE OF s */
ON CONFLICT DO NOTHING;

-- name: forget_search_title
DELETE FROM search_texts WHERE session_id = :session_id AND message_id IS NULL;

-- name: prepare_search
-- PostgreSQL finds terms by bitmap scans alone, which are ruled out for other statements.
SELECT /*sqlite 'on' */ /*postgres set_config('enable_bitmapscan', 'on', TRUE) */ AS is_prepared;

-- name: search_messages
-- The latest first. PostgreSQL must not go through the numbers in order and compare the terms of each: so `+ 0`.
SELECT
    t.number, t.session_id, s.title AS session_title, s.agent_id, m.id AS message_id, m.run_id, m.role, m.created_at,
    m.content AS text
FROM (
    SELECT t.number, t.session_id, t.message_id
    FROM /*sqlite search_terms CROSS JOIN search_texts t ON t.number = search_terms.rowid */ /*postgres search_texts t */
    WHERE
        /*sqlite search_terms MATCH :terms AND search_terms.rowid < :before */
        /*postgres t.terms @@ CAST(:terms AS TSQUERY) AND t.number < :before */
        AND t.user_id = :user_id AND t.message_id IS NOT NULL
    ORDER BY /*sqlite search_terms.rowid */ /*postgres t.number + 0 */ DESC LIMIT :most
) AS t
CROSS JOIN sessions s CROSS JOIN messages m
WHERE s.id = t.session_id AND m.id = t.message_id
ORDER BY t.number DESC;

-- name: search_titles
-- The latest first, as above.
SELECT
    t.number, t.session_id, s.title AS session_title, s.agent_id, NULL AS message_id, NULL AS run_id, NULL AS role,
    s.created_at, s.title AS text
FROM (
    SELECT t.number, t.session_id
    FROM /*sqlite search_terms CROSS JOIN search_texts t ON t.number = search_terms.rowid */ /*postgres search_texts t */
    WHERE
        /*sqlite search_terms MATCH :terms AND search_terms.rowid < :before */
        /*postgres t.terms @@ CAST(:terms AS TSQUERY) AND t.number < :before */
        AND t.user_id = :user_id AND t.message_id IS NULL
    ORDER BY /*sqlite search_terms.rowid */ /*postgres t.number + 0 */ DESC LIMIT :most
) AS t
CROSS JOIN sessions s
WHERE s.id = t.session_id
ORDER BY t.number DESC;

-- name: search_progress
SELECT sessions_before, messages_before, next_number, done, total FROM search_progress WHERE id = 1;

-- name: move_search_progress
-- Only if no other node has moved it since it was read.
UPDATE search_progress SET
    sessions_before = :sessions_before, messages_before = :messages_before, next_number = :next_number, done = :done
WHERE id = 1 AND done = :done_before
RETURNING id;

-- name: titles_before
SELECT id, user_id, title FROM sessions WHERE id < :before ORDER BY id DESC LIMIT :most;

-- name: messages_before
SELECT m.id, m.session_id, m.role, s.user_id, SUBSTR(m.content, 1, :most_characters) AS content
FROM (SELECT id, session_id, role, content FROM messages WHERE id < :before ORDER BY id DESC LIMIT :most) AS m
CROSS JOIN sessions s
WHERE s.id = m.session_id
ORDER BY m.id DESC;
