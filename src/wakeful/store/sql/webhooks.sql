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
