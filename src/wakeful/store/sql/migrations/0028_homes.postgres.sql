-- The home of an agent: its database and files, which any node can bring into a cache on its own disk.
CREATE TABLE homes (
    agent_id TEXT PRIMARY KEY REFERENCES agents (id),
    -- The node that wrote last or has claimed a run; null: none. A higher fence ends the writes of an earlier holder.
    holder TEXT,
    fence BIGINT NOT NULL,
    -- Until when its holder keeps other nodes waiting, because it has lost a race or needs long; null: it does not. A
    -- claim of a run does not wait.
    busy_until BIGINT,
    -- Goes up with every change of the database or of the files.
    seq BIGINT NOT NULL DEFAULT 0,
    page_count BIGINT NOT NULL DEFAULT 0,
    -- Numbers of the last changes of the database, of its snapshots, and of the other files.
    pages_seq BIGINT NOT NULL DEFAULT 0,
    snapshots_seq BIGINT NOT NULL DEFAULT 0,
    files_seq BIGINT NOT NULL DEFAULT 0,
    -- The key file of the database, and the key of the files; both are encrypted with the device key.
    database_key TEXT,
    files_key TEXT,
    -- Id of the last change: after a lost connection a node learns from it whether that was its own.
    last_save TEXT
);

-- Pages of the database, as encrypted as they are in its file. There is no index on seq, so that an update of a page
-- need not touch an index; the rows of one home without their bytes are few and short.
CREATE TABLE home_pages (
    agent_id TEXT NOT NULL REFERENCES homes (agent_id),
    page_no BIGINT NOT NULL,
    seq BIGINT NOT NULL,
    bytes BYTEA NOT NULL,
    PRIMARY KEY (agent_id, page_no)
) WITH (fillfactor = 80);
ALTER TABLE home_pages ALTER COLUMN bytes SET STORAGE EXTERNAL;

-- Files, links and empty folders.
CREATE TABLE home_files (
    agent_id TEXT NOT NULL REFERENCES homes (agent_id),
    path TEXT NOT NULL,
    kind TEXT NOT NULL,
    mode BIGINT NOT NULL,
    size BIGINT NOT NULL,
    -- Keyed hash of the content; null for an empty folder.
    digest TEXT,
    PRIMARY KEY (agent_id, path)
);

-- Uploads by their session, with which they are deleted.
CREATE INDEX home_uploads ON home_files (split_part(path, '/', 3)) WHERE path LIKE 'workspace/uploads/%';

-- Contents of files, encrypted, in pieces.
CREATE TABLE home_blobs (
    agent_id TEXT NOT NULL REFERENCES homes (agent_id),
    digest TEXT NOT NULL,
    piece BIGINT NOT NULL,
    bytes BYTEA NOT NULL,
    PRIMARY KEY (agent_id, digest, piece)
);
ALTER TABLE home_blobs ALTER COLUMN bytes SET STORAGE EXTERNAL;

-- The device key that all homes are encrypted with.
CREATE TABLE home_device (
    only_row BIGINT PRIMARY KEY CHECK (only_row = 1),
    key_fingerprint TEXT NOT NULL
);
