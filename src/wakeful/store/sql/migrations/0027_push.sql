-- Browsers that get push messages. The endpoint is a secret: it never leaves but to be sent to.
CREATE TABLE push_subscriptions (
    id TEXT PRIMARY KEY,
    user_id TEXT NOT NULL REFERENCES users (id),
    token_id TEXT NOT NULL,
    name TEXT NOT NULL,
    endpoint TEXT NOT NULL UNIQUE,
    service TEXT NOT NULL,
    p256dh TEXT NOT NULL,
    auth TEXT NOT NULL,
    contact TEXT,
    hour_from BIGINT,
    hour_count BIGINT NOT NULL,
    wait_until BIGINT,
    last_sent_at BIGINT,
    last_error TEXT,
    last_error_at BIGINT,
    created_at BIGINT NOT NULL
);
CREATE INDEX push_subscriptions_of_user ON push_subscriptions (user_id);

-- The key that signs push messages (VAPID), encrypted with the device key: one row with the id 1, for all nodes.
CREATE TABLE push_key (
    id BIGINT PRIMARY KEY,
    public_key TEXT NOT NULL,
    encrypted_key TEXT NOT NULL,
    created_at BIGINT NOT NULL
);
