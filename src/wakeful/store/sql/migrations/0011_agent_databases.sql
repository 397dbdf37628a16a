-- How much the agent's own database may hold, in mebibytes. Null: as the server's settings say.
ALTER TABLE agents ADD COLUMN database_mb BIGINT;

-- How far the changelog of an agent's own database had come when this server last wrote there: its last entry and that
-- one's hash. Out of reach of whoever edits the agent's file, so that an end that was cut off shows.
CREATE TABLE changelog_heads (
    agent_id TEXT PRIMARY KEY,
    entry BIGINT NOT NULL,
    hash TEXT NOT NULL
);
