-- Where the data came from that a run has read and its user did not write, as a JSON list; of a wake, those of the run
-- that booked it. Runs of hooks of earlier versions, and what they booked, are known by their door.
ALTER TABLE runs ADD COLUMN outside_sources TEXT NOT NULL DEFAULT '[]';
ALTER TABLE wakes ADD COLUMN outside_sources TEXT NOT NULL DEFAULT '[]';
UPDATE runs SET outside_sources = CAST(json_build_array('hook:' || token_name) AS TEXT)
WHERE door = 'hook' AND token_name IS NOT NULL;
UPDATE wakes SET outside_sources = CAST(json_build_array('hook:' || token_name) AS TEXT)
WHERE door = 'hook' AND token_name IS NOT NULL;
UPDATE wakes SET outside_sources = (SELECT r.outside_sources FROM runs r WHERE r.id = wakes.booked_by_run)
WHERE
    status IN ('pending', 'queued')
    AND (SELECT 1 FROM runs r WHERE r.id = wakes.booked_by_run AND r.door = 'hook' LIMIT 1) IS NOT NULL;
CREATE INDEX runs_marked ON runs (session_id, queued_at) WHERE outside_sources <> '[]';
