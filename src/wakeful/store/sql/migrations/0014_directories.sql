-- Data directories of the nodes on this store. Agents' databases and files lie in one of them.
CREATE TABLE directories (
    id TEXT PRIMARY KEY,
    -- Host and path, for people.
    place TEXT NOT NULL,
    -- Of the device key that its databases are encrypted with; null: not known yet.
    key_fingerprint TEXT,
    -- When a node on it was last alive.
    seen_at BIGINT NOT NULL
);

-- Running nodes. A row that is not kept fresh is of one that died.
CREATE TABLE nodes (
    owner TEXT PRIMARY KEY,
    directory_id TEXT NOT NULL REFERENCES directories (id),
    key_fingerprint TEXT NOT NULL,
    seen_at BIGINT NOT NULL
);
CREATE INDEX nodes_of_directory ON nodes (directory_id, seen_at);

-- Where an agent's database and files are. Written before the first of them, and never changed.
CREATE TABLE agent_directories (
    agent_id TEXT PRIMARY KEY REFERENCES agents (id),
    directory_id TEXT NOT NULL REFERENCES directories (id)
);
CREATE INDEX agents_of_directory ON agent_directories (directory_id);
