-- Wishes to stop a run whose row could not be written, because a node that does not answer holds it. They are carried
-- out as soon as that row is free. Not bound to runs by a reference: that would wait for the same lock.
CREATE TABLE stop_wishes (
    run_id TEXT PRIMARY KEY,
    requested_at BIGINT NOT NULL
);
