-- Ways to reach a person outside of the inbox. The address is a secret: it never leaves but to be sent to.
CREATE TABLE channels (
    id TEXT PRIMARY KEY,
    user_id TEXT NOT NULL REFERENCES users (id),
    name TEXT NOT NULL,
    url TEXT NOT NULL,
    shown TEXT NOT NULL,
    enabled BIGINT NOT NULL,
    hour_from BIGINT,
    hour_count BIGINT NOT NULL,
    last_sent_at BIGINT,
    last_error TEXT,
    last_error_at BIGINT,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    UNIQUE (user_id, name)
);

-- When a node took a notice on to tell it to the channels. What was told before there were any is not told again.
ALTER TABLE notifications ADD COLUMN told_at BIGINT;
UPDATE notifications SET told_at = created_at;
CREATE INDEX notifications_untold ON notifications (created_at) WHERE told_at IS NULL;

ALTER TABLE wakes ADD COLUMN muted BIGINT NOT NULL DEFAULT 0;
-- When a person last had a hand in it.
ALTER TABLE wakes ADD COLUMN seen_at BIGINT;
CREATE INDEX wakes_recurring_recalls ON wakes (created_at)
WHERE status = 'pending' AND kind = 'recall' AND call_type = 'recurring';
CREATE INDEX messages_of_people ON messages (session_id, created_at) WHERE role = 'user' AND wake_id IS NULL;
