-- name: table_sizes
-- Bytes of each table with its indexes. It reads every page of the file.
SELECT s.tbl_name AS name, SUM(d.pgsize) AS bytes FROM dbstat d JOIN sqlite_schema s ON s.name = d.name
WHERE d.aggregate = 1 GROUP BY s.tbl_name;

-- name: texts_of_agents
-- Messages of each agent, and the bytes of their text.
SELECT
    s.agent_id AS agent_id, COUNT(*) AS messages,
    SUM(OCTET_LENGTH(m.content) + COALESCE(OCTET_LENGTH(m.data), 0)) AS bytes
FROM messages m JOIN sessions s ON s.id = m.session_id GROUP BY s.agent_id;
