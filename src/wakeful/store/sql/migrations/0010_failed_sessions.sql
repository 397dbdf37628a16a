-- Which sessions ended badly is asked of every session in a list.
CREATE INDEX runs_failed ON runs (session_id, finished_at) WHERE status IN ('failed', 'interrupted');
