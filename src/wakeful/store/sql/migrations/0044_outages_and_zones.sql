-- A run whose model did not answer is not claimed before this time.
ALTER TABLE runs ADD COLUMN not_before BIGINT;

-- The UTC offsets of time zones as they were known when wakes were planned by them: [[instant, seconds], …].
CREATE TABLE zone_rules (zone TEXT PRIMARY KEY, offsets TEXT NOT NULL);
