-- The last changes of a home with their ids: after PostgreSQL was taken back, a number may come again, but not an id.
ALTER TABLE homes ADD COLUMN saves TEXT NOT NULL DEFAULT '';
UPDATE homes SET last_save = left(md5(agent_id || random()::text), 16) WHERE last_save IS NULL AND seq > 0;
