-- What people see of a node, and what decides about the runs that it claims.
ALTER TABLE nodes ADD COLUMN name TEXT NOT NULL DEFAULT '';
ALTER TABLE nodes ADD COLUMN version TEXT NOT NULL DEFAULT '';
ALTER TABLE nodes ADD COLUMN started_at BIGINT NOT NULL DEFAULT 0;
ALTER TABLE nodes ADD COLUMN is_draining BIGINT NOT NULL DEFAULT 0;
-- JSON list of names in the node's settings.
ALTER TABLE nodes ADD COLUMN mcp_servers TEXT NOT NULL DEFAULT '[]';
-- The owner's token in the node's settings or token file: it is not revoked while the node runs.
ALTER TABLE nodes ADD COLUMN token_id TEXT;
CREATE INDEX agents_with_mcp_servers ON agents (id) WHERE mcp_servers <> '[]' AND deleted_at IS NULL;
-- The name of the node that claimed the run last.
ALTER TABLE runs ADD COLUMN node TEXT;
-- A copy of an embedded store in PostgreSQL, made by `wakeful move`. No server starts here while it is unfinished or undone.
CREATE TABLE store_moves (
    id TEXT PRIMARY KEY,
    -- The data directory of the embedded store.
    directory_id TEXT NOT NULL,
    started_at BIGINT NOT NULL,
    finished_at BIGINT,
    undone_at BIGINT,
    -- JSON: the last rowid and the number of rows copied, by table.
    progress TEXT NOT NULL
);
