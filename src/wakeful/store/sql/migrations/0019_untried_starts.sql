-- A start that a crash cut off before it reached a model or tool call spends no attempt. Such starts are counted apart.
ALTER TABLE runs ADD COLUMN has_called BIGINT NOT NULL DEFAULT 0;
ALTER TABLE runs ADD COLUMN lost_starts BIGINT NOT NULL DEFAULT 0;
-- Nobody knows how far those got that are at work while the schema changes: they count, as they did before.
UPDATE runs SET has_called = 1 WHERE status = 'running';
