-- Who is in a session, so that a person's message goes before queued wakes. The source is a node with an open socket
-- there, or 'message' for someone who wrote. A row that is not renewed counts no more once `until` has passed.
CREATE TABLE presence (
    session_id TEXT NOT NULL,
    source TEXT NOT NULL,
    until BIGINT NOT NULL,
    PRIMARY KEY (session_id, source)
);

-- Until then no queued wake of the session starts. Set at a run's end if someone is there.
ALTER TABLE sessions ADD COLUMN held_until BIGINT;
-- When a wake's run last ended there with someone present: the next one has been first in line since.
ALTER TABLE sessions ADD COLUMN woken_at BIGINT;
CREATE INDEX sessions_held ON sessions (held_until) WHERE held_until IS NOT NULL;

-- Models that schedules of the agent may ask for besides its own.
ALTER TABLE agents ADD COLUMN allowed_models TEXT NOT NULL DEFAULT '[]';
