-- A person's address outside that runs of a wake are reported to: a secret, and the part of it that may be shown.
ALTER TABLE wakes ADD COLUMN ping_url TEXT;
ALTER TABLE wakes ADD COLUMN ping_to TEXT;
ALTER TABLE runs ADD COLUMN has_ping BIGINT NOT NULL DEFAULT 0;

-- The last heartbeat ping of all nodes that share this store: one row at most.
CREATE TABLE heartbeat_pings (
    id BIGINT PRIMARY KEY,
    pinged_at BIGINT NOT NULL,
    is_ready BIGINT NOT NULL
);
