-- How a booking or a run came in, and the token or hook behind it; null: before this was recorded. The name is a copy:
-- tokens and hooks are deleted, and the history stays.
ALTER TABLE wakes ADD COLUMN door TEXT;
ALTER TABLE wakes ADD COLUMN token_id TEXT;
ALTER TABLE wakes ADD COLUMN token_name TEXT;
ALTER TABLE runs ADD COLUMN door TEXT;
ALTER TABLE runs ADD COLUMN token_id TEXT;
ALTER TABLE runs ADD COLUMN token_name TEXT;
-- For the brake on the tokens of programs (domain.via.BRAKED).
CREATE INDEX wakes_of_token ON wakes (token_id, created_at) WHERE door IN ('mcp', 'v1', 'hook');
CREATE INDEX runs_of_token ON runs (token_id, queued_at) WHERE door IN ('mcp', 'v1', 'hook');

-- The names that programs give their bookings, so that a repeated request books once.
CREATE TABLE booking_keys (
    token_id TEXT NOT NULL,
    key TEXT NOT NULL,
    wake_id TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (token_id, key)
);
CREATE INDEX booking_keys_by_age ON booking_keys (created_at);
