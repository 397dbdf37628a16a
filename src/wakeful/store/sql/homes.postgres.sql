-- name: home_of_agent
SELECT * FROM homes WHERE agent_id = :agent_id;

-- name: home_for_run
-- Not of a run that another node has taken over.
SELECT h.* FROM homes h
WHERE
    h.agent_id = :agent_id AND h.holder = :owner
    AND NOT EXISTS (
        SELECT 1 FROM runs r WHERE r.id = :run_id AND (r.status <> 'running' OR r.owner IS DISTINCT FROM :owner)
    );

-- name: hold_home
-- A run that another node has taken over must not take the home back. Taking it a second time changes nothing but the
-- fence, which ends what a lost connection of ours may still be at.
INSERT INTO homes (agent_id, holder, fence, busy_until)
SELECT a.id, :owner, 1, CAST(:busy_until AS BIGINT) FROM agents a
WHERE
    a.id = :agent_id AND a.deleted_at IS NULL
    AND NOT EXISTS (
        SELECT 1 FROM runs r WHERE r.id = :run_id AND (r.status <> 'running' OR r.owner IS DISTINCT FROM :owner)
    )
ON CONFLICT (agent_id) DO UPDATE SET
    holder = excluded.holder, fence = homes.fence + 1, busy_until = excluded.busy_until
WHERE homes.busy_until IS NULL OR homes.busy_until <= :now OR homes.holder = :owner
RETURNING *;

-- name: may_hold_home
-- Whether it is only the busy holder that keeps a node from taking a home.
SELECT a.id FROM agents a
WHERE
    a.id = :agent_id AND a.deleted_at IS NULL
    AND NOT EXISTS (
        SELECT 1 FROM runs r WHERE r.id = :run_id AND (r.status <> 'running' OR r.owner IS DISTINCT FROM :owner)
    );

-- name: free_home
UPDATE homes SET busy_until = NULL WHERE agent_id = :agent_id AND holder = :holder AND fence = :fence;

-- name: save_home
-- Only the holder may, and only what follows on what it has read; after PostgreSQL was taken back, another change may
-- have the same number. The pages are a few; see add_home_pages for more.
WITH home AS (
    UPDATE homes
    SET
        seq = seq + 1, last_save = :save_id, saves = left(seq + 1 || ':' || CAST(:save_id AS TEXT) || ' ' || saves, 1400),
        busy_until = NULL, page_count = :page_count, database_key = :database_key,
        pages_seq = CASE WHEN CAST(:has_pages AS BIGINT) = 1 THEN seq + 1 ELSE pages_seq END
    WHERE
        agent_id = :agent_id AND holder = :holder AND fence = :fence AND seq = :seq
        AND last_save IS NOT DISTINCT FROM :last_save
    RETURNING *
), saved AS (
    INSERT INTO home_pages (agent_id, page_no, seq, bytes)
    SELECT home.agent_id, p.page_no, home.seq, p.bytes
    FROM home, unnest(CAST(:page_nos AS BIGINT[]), CAST(:pages AS BYTEA[])) AS p (page_no, bytes)
    ON CONFLICT (agent_id, page_no) DO UPDATE SET seq = excluded.seq, bytes = excluded.bytes
)
SELECT * FROM home;

-- name: add_home_pages
INSERT INTO home_pages (agent_id, page_no, seq, bytes)
SELECT CAST(:agent_id AS TEXT), p.page_no, CAST(:seq AS BIGINT), p.bytes
FROM unnest(CAST(:page_nos AS BIGINT[]), CAST(:pages AS BYTEA[])) AS p (page_no, bytes)
ON CONFLICT (agent_id, page_no) DO UPDATE SET seq = excluded.seq, bytes = excluded.bytes;

-- name: cut_home_pages
DELETE FROM home_pages WHERE agent_id = :agent_id AND page_no > :page_count;

-- name: home_pages_since
SELECT page_no, bytes FROM home_pages
WHERE agent_id = :agent_id AND seq > :seq AND page_no > :after
ORDER BY page_no LIMIT :most;

-- name: count_home_pages
SELECT COUNT(*) AS pages FROM home_pages WHERE agent_id = :agent_id;

-- name: home_files_of
-- A row for a folder itself, which none of ours is, could make it a link.
SELECT path, kind, mode, size, digest FROM home_files
WHERE
    agent_id = :agent_id
    AND split_part(path, '/', 1) = ANY(CAST(:folders AS TEXT[])) AND split_part(path, '/', 2) <> '';

-- name: note_home_files
UPDATE homes
SET
    files_key = :files_key,
    snapshots_seq = CASE WHEN CAST(:of_database AS BIGINT) = 1 THEN seq ELSE snapshots_seq END,
    files_seq = CASE WHEN CAST(:of_database AS BIGINT) = 0 THEN seq ELSE files_seq END
WHERE agent_id = :agent_id
RETURNING *;

-- name: save_home_files
INSERT INTO home_files (agent_id, path, kind, mode, size, digest)
SELECT n.agent_id, n.path, n.kind, n.mode, n.size, n.digest FROM rows(home_files) AS n
ON CONFLICT (agent_id, path) DO UPDATE SET
    kind = excluded.kind, mode = excluded.mode, size = excluded.size, digest = excluded.digest;

-- name: delete_home_files
DELETE FROM home_files WHERE agent_id = :agent_id AND path = ANY(CAST(:paths AS TEXT[]));

-- name: home_blobs_present
SELECT DISTINCT digest FROM home_blobs WHERE agent_id = :agent_id AND digest = ANY(CAST(:digests AS TEXT[]));

-- name: add_home_blobs
INSERT INTO home_blobs (agent_id, digest, piece, bytes)
SELECT CAST(:agent_id AS TEXT), p.digest, p.piece, p.bytes
FROM unnest(CAST(:digests AS TEXT[]), CAST(:numbers AS BIGINT[]), CAST(:pieces AS BYTEA[])) AS p (digest, piece, bytes)
ON CONFLICT DO NOTHING;

-- name: home_blob_piece
SELECT bytes FROM home_blobs WHERE agent_id = :agent_id AND digest = :digest AND piece = :piece;

-- name: first_home_blobs
-- The first piece of many files at once; most have no more.
SELECT digest, bytes FROM home_blobs
WHERE agent_id = :agent_id AND digest = ANY(CAST(:digests AS TEXT[])) AND piece = 0;

-- name: forget_home_blobs
-- Contents that no file has any more.
DELETE FROM home_blobs b
WHERE b.agent_id = :agent_id AND NOT EXISTS (
    SELECT 1 FROM home_files f WHERE f.agent_id = b.agent_id AND f.digest = b.digest
);

-- name: home_upload_sessions
-- Sessions that have uploads and were deleted.
SELECT DISTINCT split_part(f.path, '/', 3) AS session_id FROM home_files f
WHERE
    f.path LIKE 'workspace/uploads/%'
    AND NOT EXISTS (SELECT 1 FROM sessions s WHERE s.id = split_part(f.path, '/', 3));

-- name: delete_home_uploads
DELETE FROM home_files
WHERE path LIKE 'workspace/uploads/%' AND split_part(path, '/', 3) = :session_id
RETURNING agent_id;

-- name: touch_home
-- Its files have changed without its holder: what that is about to save is compared anew.
UPDATE homes
SET
    seq = seq + 1, files_seq = seq + 1, last_save = :save_id,
    saves = left(seq + 1 || ':' || CAST(:save_id AS TEXT) || ' ' || saves, 1400)
WHERE agent_id = :agent_id;

-- name: erase_home
-- The row stays, so that the other nodes notice that their caches are too old.
UPDATE homes
SET
    holder = NULL, fence = fence + 1, seq = seq + 1, page_count = 0, database_key = NULL,
    last_save = :save_id, saves = left(seq + 1 || ':' || CAST(:save_id AS TEXT) || ' ' || saves, 1400),
    pages_seq = seq + 1, snapshots_seq = seq + 1,
    files_seq = CASE WHEN CAST(:files_too AS BIGINT) = 0 THEN files_seq ELSE seq + 1 END,
    files_key = CASE WHEN CAST(:files_too AS BIGINT) = 0 THEN files_key END
WHERE agent_id = :agent_id
RETURNING agent_id;

-- name: homes_of_ended_agents
SELECT h.agent_id FROM homes h JOIN agents a ON a.id = h.agent_id
WHERE a.deleted_at IS NOT NULL AND (h.database_key IS NOT NULL OR h.files_key IS NOT NULL);
