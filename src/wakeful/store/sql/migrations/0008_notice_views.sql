-- The saved view that shows more, if an agent named one; by its name, since a database is its agent's own.
ALTER TABLE notifications ADD COLUMN view_ref TEXT;
