-- The few wakes that are still to run, apart from the many that have: a booking counts those of its session, and the
-- agenda and the banner list those of a user and of a session.
CREATE INDEX wakes_live_of_session ON wakes (session_id) WHERE status IN ('pending', 'queued');
CREATE INDEX wakes_live_of_user ON wakes (user_id, nominal_at, id) WHERE status IN ('pending', 'queued');
