-- The last scheduled backups of all nodes that share this store: one row at most.
CREATE TABLE scheduled_backups (
    id BIGINT PRIMARY KEY,
    started_at BIGINT,
    renewed_at BIGINT,
    node TEXT,
    finished_at BIGINT,
    file TEXT,
    size BIGINT,
    failed_at BIGINT,
    error TEXT
);
