-- How much the agent's own database may hold, in mebibytes. Null: as the server's settings say.
ALTER TABLE agents ADD COLUMN database_mb BIGINT;
