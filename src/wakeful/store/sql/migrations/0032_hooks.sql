-- Incoming hooks: addresses at which other systems start work. Secrets are encrypted with the device key.
CREATE TABLE hooks (
    id TEXT PRIMARY KEY,
    user_id TEXT NOT NULL REFERENCES users (id),
    agent_id TEXT NOT NULL REFERENCES agents (id),
    session_id TEXT,
    name TEXT NOT NULL,
    scheme TEXT NOT NULL,
    encrypted_secret TEXT NOT NULL,
    encrypted_old_secret TEXT,
    old_until BIGINT,
    events TEXT NOT NULL,
    instructions TEXT NOT NULL,
    tools TEXT,
    coalesce_seconds BIGINT NOT NULL,
    per_minute BIGINT NOT NULL,
    mode TEXT NOT NULL,
    enabled BIGINT NOT NULL,
    last_at BIGINT,
    refused_at BIGINT,
    refused_why TEXT,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL
);
CREATE UNIQUE INDEX hooks_of_user ON hooks (user_id, name);

-- What a hook was sent by someone who has its secret. The payload is deleted before the rest of the row.
CREATE TABLE hook_deliveries (
    id TEXT PRIMARY KEY,
    hook_id TEXT NOT NULL REFERENCES hooks (id) ON DELETE CASCADE,
    delivery_id TEXT NOT NULL,
    sha256 TEXT NOT NULL,
    event TEXT,
    at BIGINT NOT NULL,
    outcome TEXT NOT NULL,
    wake_id TEXT,
    run_id TEXT,
    size BIGINT NOT NULL,
    payload BYTEA
);
CREATE UNIQUE INDEX hook_deliveries_by_sender ON hook_deliveries (hook_id, delivery_id);
CREATE INDEX hook_deliveries_by_body ON hook_deliveries (hook_id, sha256);
CREATE INDEX hook_deliveries_of_hook ON hook_deliveries (hook_id, at);
CREATE INDEX hook_deliveries_of_wake ON hook_deliveries (wake_id) WHERE wake_id IS NOT NULL;
CREATE INDEX hook_deliveries_by_age ON hook_deliveries (at);
