-- name: table_sizes
-- Bytes of each table with its indexes and large values.
SELECT CAST(relname AS TEXT) AS name, pg_total_relation_size(oid) AS bytes FROM pg_class
WHERE relkind = 'r' AND relnamespace = CAST(current_schema() AS regnamespace);

-- name: texts_of_agents
-- Messages of each agent, and the bytes of their text, as compressed as it is stored.
SELECT
    s.agent_id AS agent_id, COUNT(*) AS messages,
    CAST(SUM(pg_column_size(m.content) + COALESCE(pg_column_size(m.data), 0)) AS BIGINT) AS bytes
FROM messages m JOIN sessions s ON s.id = m.session_id GROUP BY s.agent_id;

-- name: sizes_of_homes
-- Bytes of each agent's database and files.
SELECT
    h.agent_id AS agent_id,
    CAST(COALESCE((SELECT SUM(LENGTH(p.bytes)) FROM home_pages p WHERE p.agent_id = h.agent_id), 0) AS BIGINT) AS databases,
    CAST(COALESCE((SELECT SUM(f.size) FROM home_files f WHERE f.agent_id = h.agent_id), 0) AS BIGINT) AS files
FROM homes h;
