-- name: add_webhook
-- No row comes back if the name is taken.
INSERT INTO webhooks (
    id, user_id, agent_id, name, url, shown, encrypted_secret, encrypted_old_secret, old_until, events, enabled,
    failing_since, last_sent_at, last_error, last_error_at, created_at, updated_at
)
VALUES (
    :id, :user_id, :agent_id, :name, :url, :shown, :encrypted_secret, :encrypted_old_secret, :old_until, :events,
    :enabled, :failing_since, :last_sent_at, :last_error, :last_error_at, :created_at, :updated_at
)
ON CONFLICT DO NOTHING
RETURNING id;

-- name: webhooks_of_user
SELECT * FROM webhooks WHERE user_id = :user_id ORDER BY name;

-- name: webhook_of_user
-- Read one in order to change it.
SELECT * FROM webhooks WHERE id = :id AND user_id = :user_id /*postgres FOR UPDATE */;

-- name: webhook_by_id
SELECT * FROM webhooks WHERE id = :id;

-- name: lock_webhook
SELECT * FROM webhooks WHERE id = :id /*postgres FOR UPDATE */;

-- name: webhooks_to_tell
-- Those of these people that are on.
SELECT w.id, w.user_id, w.agent_id, w.events
FROM rows(webhooks) AS n JOIN webhooks w ON w.user_id = n.user_id
WHERE w.enabled = 1;

-- name: save_webhook
UPDATE webhooks
SET
    agent_id = :agent_id, name = :name, url = :url, shown = :shown, encrypted_secret = :encrypted_secret,
    encrypted_old_secret = :encrypted_old_secret, old_until = :old_until, events = :events, enabled = :enabled,
    failing_since = :failing_since, last_sent_at = :last_sent_at, last_error = :last_error,
    last_error_at = :last_error_at, updated_at = :updated_at
WHERE id = :id;

-- name: delete_webhook
DELETE FROM webhooks WHERE id = :id AND user_id = :user_id RETURNING id;

-- name: delete_old_webhook_secrets
UPDATE webhooks SET encrypted_old_secret = NULL, old_until = NULL WHERE old_until <= :now;

-- name: add_webhook_messages
-- One for each event and webhook, however often it is noted.
INSERT INTO webhook_messages (
    id, webhook_id, event, about, data, status, attempts, next_at, taken_at, last_status, last_error, created_at, settled_at
)
SELECT
    n.id, n.webhook_id, n.event, n.about, n.data, n.status, n.attempts, n.next_at, n.taken_at, n.last_status, n.last_error,
    n.created_at, n.settled_at
FROM rows(webhook_messages) AS n
WHERE TRUE
ON CONFLICT DO NOTHING
/*postgres RETURNING id */;

-- name: claim_webhook_messages
-- Of several nodes, one takes a message that is due. A claim from before `left_behind` was abandoned.
UPDATE webhook_messages SET taken_at = :now
WHERE
    id IN (
        SELECT id FROM webhook_messages
        WHERE
            status = 'pending' AND next_at <= :now AND (taken_at IS NULL OR taken_at < :left_behind OR taken_at > :now)
        ORDER BY next_at LIMIT :most /*postgres FOR UPDATE SKIP LOCKED */
    )
    AND status = 'pending' AND (taken_at IS NULL OR taken_at < :left_behind OR taken_at > :now)
RETURNING *;

-- name: webhook_message
SELECT * FROM webhook_messages WHERE id = :id AND webhook_id = :webhook_id;

-- name: save_webhook_message
UPDATE webhook_messages
SET
    status = :status, attempts = :attempts, next_at = :next_at, taken_at = :taken_at, last_status = :last_status,
    last_error = :last_error, settled_at = :settled_at
WHERE id = :id;

-- name: cancel_webhook_messages
UPDATE webhook_messages SET status = 'cancelled', next_at = NULL, taken_at = NULL, settled_at = :now
WHERE webhook_id = :webhook_id AND status = 'pending';

-- name: messages_of_webhook
-- The latest first. Each page goes on where the one before ended.
SELECT * FROM webhook_messages
WHERE
    webhook_id = :webhook_id
    AND (CAST(:before AS BIGINT) IS NULL OR created_at < :before OR (created_at = :before AND id < :before_id))
ORDER BY created_at DESC, id DESC LIMIT :most;

-- name: next_webhook_message
SELECT MIN(next_at) AS next_at FROM webhook_messages WHERE status = 'pending' AND taken_at IS NULL;

-- name: delete_old_webhook_messages
DELETE FROM webhook_messages WHERE created_at < :before;
