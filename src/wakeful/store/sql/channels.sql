-- name: add_channel
-- No row comes back if the name is taken.
INSERT INTO channels (
    id, user_id, name, url, shown, enabled, hour_from, hour_count, last_sent_at, last_error, last_error_at,
    created_at, updated_at
)
VALUES (
    :id, :user_id, :name, :url, :shown, :enabled, :hour_from, :hour_count, :last_sent_at, :last_error, :last_error_at,
    :created_at, :updated_at
)
ON CONFLICT DO NOTHING
RETURNING id;

-- name: channels_of_user
SELECT * FROM channels WHERE user_id = :user_id ORDER BY name;

-- name: channel_of_user
-- Read one in order to change it.
SELECT * FROM channels WHERE id = :id AND user_id = :user_id /*postgres FOR UPDATE */;

-- name: lock_channel
-- That of a person who is still there. Another node that counts on it waits.
SELECT c.* FROM channels c
WHERE c.id = :id AND EXISTS (SELECT 1 FROM users u WHERE u.id = c.user_id AND u.deleted_at IS NULL)
/*postgres FOR UPDATE OF c */;

-- name: save_channel
UPDATE channels
SET
    name = :name, url = :url, shown = :shown, enabled = :enabled, hour_from = :hour_from, hour_count = :hour_count,
    last_sent_at = :last_sent_at, last_error = :last_error, last_error_at = :last_error_at, updated_at = :updated_at
WHERE id = :id;

-- name: delete_channel
DELETE FROM channels WHERE id = :id AND user_id = :user_id RETURNING id;
