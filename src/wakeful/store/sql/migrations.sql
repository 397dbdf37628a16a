-- name: applied_migrations
-- Which steps of the schema are there.
SELECT number FROM migrations;
