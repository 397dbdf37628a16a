-- Agents' files are in PostgreSQL, or beside the embedded store: no agent is bound to the data directory of a node. The
-- start before this has refused if one had files there alone.
DROP TABLE agent_directories;
UPDATE runs SET reason = NULL WHERE status = 'queued' AND reason = 'memory_elsewhere';
