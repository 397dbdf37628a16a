-- Messages to something outside: to channels, browsers with push messages, webhooks, and the ping addresses of wakes. Each
-- is added in the transaction of what it is about. Those of webhooks stay for 30 days; others go once they are settled.
CREATE TABLE outgoing (
    id TEXT PRIMARY KEY,
    kind TEXT NOT NULL,
    -- The id of the channel, browser, webhook or wake.
    target TEXT NOT NULL,
    event TEXT NOT NULL,
    -- A target gets one message about the same thing.
    about TEXT NOT NULL,
    body TEXT NOT NULL,
    status TEXT NOT NULL,
    attempts BIGINT NOT NULL,
    next_at BIGINT,
    -- When a node claimed it, and how many claims nodes that went down have left behind.
    taken_at BIGINT,
    abandoned BIGINT NOT NULL,
    last_status BIGINT,
    last_error TEXT,
    created_at BIGINT NOT NULL,
    settled_at BIGINT
);

INSERT INTO outgoing (
    id, kind, target, event, about, body, status, attempts, next_at, taken_at, abandoned, last_status, last_error,
    created_at, settled_at
)
SELECT
    id, 'webhook', webhook_id, event, about, data, status, attempts, next_at, taken_at, 0, last_status, last_error,
    created_at, settled_at
FROM webhook_messages;
DROP TABLE webhook_messages;

-- Notices that had not reached the channels and browsers of their person. One that a node was sending says so.
INSERT INTO outgoing (id, kind, target, event, about, body, status, attempts, next_at, abandoned, created_at)
SELECT
    n.id || ':' || o.id, o.kind, o.id, 'notice', 'notice:' || n.id,
    '{"notice_id":"' || n.id || CASE WHEN n.taken_at IS NULL THEN '"}' ELSE '","is_again":true}' END,
    'pending', 0, n.created_at, 0, n.created_at
FROM notifications n
JOIN (
    SELECT 'channel' AS kind, id, user_id FROM channels WHERE enabled = 1
    UNION ALL
    SELECT 'push' AS kind, id, user_id FROM push_subscriptions
) AS o ON o.user_id = n.user_id
WHERE n.told_at IS NULL;
DROP INDEX notifications_untold;
ALTER TABLE notifications DROP COLUMN told_at;
ALTER TABLE notifications DROP COLUMN taken_at;

CREATE UNIQUE INDEX outgoing_once ON outgoing (target, about);
CREATE INDEX outgoing_due ON outgoing (kind, next_at) WHERE status = 'pending';
CREATE INDEX outgoing_taken ON outgoing (target) WHERE taken_at IS NOT NULL;
CREATE INDEX outgoing_of_target ON outgoing (target, created_at);
CREATE INDEX outgoing_by_age ON outgoing (created_at);
