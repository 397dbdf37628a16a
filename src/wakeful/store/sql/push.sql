-- name: add_push_subscription
INSERT INTO push_subscriptions (
    id, user_id, token_id, name, endpoint, service, p256dh, auth, contact, hour_from, hour_count, wait_until,
    last_sent_at, last_error, last_error_at, created_at
)
VALUES (
    :id, :user_id, :token_id, :name, :endpoint, :service, :p256dh, :auth, :contact, :hour_from, :hour_count,
    :wait_until, :last_sent_at, :last_error, :last_error_at, :created_at
);

-- name: push_subscriptions_of_user
-- Those whose login is still valid, of a person who is still there.
SELECT p.* FROM push_subscriptions p
JOIN tokens t ON t.id = p.token_id
JOIN users u ON u.id = p.user_id
WHERE
    p.user_id = :user_id AND t.user_id = p.user_id AND t.revoked_at IS NULL
    AND (t.expires_at IS NULL OR t.expires_at > :now) AND u.deleted_at IS NULL
ORDER BY p.created_at, p.id;

-- name: lock_push_subscription
-- One whose login is still valid, of a person who is still there. Another node that counts on it waits.
SELECT p.* FROM push_subscriptions p
JOIN tokens t ON t.id = p.token_id
JOIN users u ON u.id = p.user_id
WHERE
    p.id = :id AND t.user_id = p.user_id AND t.revoked_at IS NULL
    AND (t.expires_at IS NULL OR t.expires_at > :now) AND u.deleted_at IS NULL
/*postgres FOR UPDATE OF p */;

-- name: save_push_subscription
UPDATE push_subscriptions
SET
    token_id = :token_id, name = :name, p256dh = :p256dh, auth = :auth, contact = :contact, hour_from = :hour_from,
    hour_count = :hour_count, wait_until = :wait_until, last_sent_at = :last_sent_at, last_error = :last_error,
    last_error_at = :last_error_at
WHERE id = :id;

-- name: delete_push_subscription
DELETE FROM push_subscriptions WHERE id = :id AND user_id = :user_id RETURNING id;

-- name: delete_push_endpoint
-- A browser has one subscription: who logs in and subscribes there takes it over from who did before.
DELETE FROM push_subscriptions WHERE endpoint = :endpoint AND id <> :keep;

-- name: drop_ended_push_subscriptions
-- Those whose login has ended.
DELETE FROM push_subscriptions
WHERE NOT EXISTS (
    SELECT 1 FROM tokens t
    WHERE
        t.id = push_subscriptions.token_id AND t.revoked_at IS NULL AND (t.expires_at IS NULL OR t.expires_at > :now)
);

-- name: hold_push_user
-- Two transactions about the browsers of a user wait for each other, so that two cannot both be the tenth.
SELECT id FROM users WHERE id = :user_id /*postgres FOR NO KEY UPDATE */;

-- name: add_push_key
-- Of two nodes that start at once, one adds the row and the other finds it.
INSERT INTO push_key (id, public_key, encrypted_key, created_at) VALUES (1, :public_key, :encrypted_key, :created_at)
ON CONFLICT (id) DO NOTHING;

-- name: push_key
SELECT public_key, encrypted_key FROM push_key WHERE id = 1;

-- name: drop_push_subscriptions
-- Each was made with the public key of then, so none can be used with another.
DELETE FROM push_subscriptions;

-- name: drop_push_key
DELETE FROM push_key;
