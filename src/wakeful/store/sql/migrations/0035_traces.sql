-- Spans that a trace goes on from, as W3C traceparent: of a wake, the one that booked it; of a run, that of its last
-- attempt, and before the first one that of its wake.
ALTER TABLE wakes ADD COLUMN traceparent TEXT;
ALTER TABLE runs ADD COLUMN traceparent TEXT;
