-- When a node took a notice on to tell it to the channels; told_at is now when it was done with that. What was begun and
-- not done is begun once more.
ALTER TABLE notifications ADD COLUMN taken_at BIGINT;
