-- Instants in the text of a notice, by name: they are written in the zone of the person who reads it.
ALTER TABLE notifications ADD COLUMN times TEXT;
-- When what a notice asks for was done: an agent without a next run has one again.
ALTER TABLE notifications ADD COLUMN resolved_at BIGINT;
