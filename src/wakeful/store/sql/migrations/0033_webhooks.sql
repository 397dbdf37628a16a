-- Outgoing webhooks: addresses of other systems that are told of events. Address and secret are secrets; the secret is
-- encrypted with the device key.
CREATE TABLE webhooks (
    id TEXT PRIMARY KEY,
    user_id TEXT NOT NULL REFERENCES users (id),
    agent_id TEXT,
    name TEXT NOT NULL,
    url TEXT NOT NULL,
    shown TEXT NOT NULL,
    encrypted_secret TEXT NOT NULL,
    encrypted_old_secret TEXT,
    old_until BIGINT,
    events TEXT NOT NULL,
    enabled BIGINT NOT NULL,
    failing_since BIGINT,
    last_sent_at BIGINT,
    last_error TEXT,
    last_error_at BIGINT,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL
);
CREATE UNIQUE INDEX webhooks_of_user ON webhooks (user_id, name);

-- One event for one webhook, added in the transaction in which it happened.
CREATE TABLE webhook_messages (
    id TEXT PRIMARY KEY,
    webhook_id TEXT NOT NULL REFERENCES webhooks (id) ON DELETE CASCADE,
    event TEXT NOT NULL,
    about TEXT NOT NULL,
    data TEXT NOT NULL,
    status TEXT NOT NULL,
    attempts BIGINT NOT NULL,
    next_at BIGINT,
    taken_at BIGINT,
    last_status BIGINT,
    last_error TEXT,
    created_at BIGINT NOT NULL,
    settled_at BIGINT
);
CREATE UNIQUE INDEX webhook_messages_once ON webhook_messages (webhook_id, about);
CREATE INDEX webhook_messages_due ON webhook_messages (next_at) WHERE status = 'pending';
CREATE INDEX webhook_messages_of_webhook ON webhook_messages (webhook_id, created_at);
CREATE INDEX webhook_messages_by_age ON webhook_messages (created_at);
