-- What an agent is told and may use.
ALTER TABLE agents ADD COLUMN description TEXT NOT NULL DEFAULT '';
-- Null: the server's own model.
ALTER TABLE agents ADD COLUMN model TEXT;
ALTER TABLE agents ADD COLUMN system_prompt TEXT NOT NULL DEFAULT '';
ALTER TABLE agents ADD COLUMN toolsets TEXT NOT NULL DEFAULT '[]';
ALTER TABLE agents ADD COLUMN planning BIGINT NOT NULL DEFAULT 0;
ALTER TABLE agents ADD COLUMN thinking_level TEXT;
ALTER TABLE agents ADD COLUMN max_iterations BIGINT NOT NULL DEFAULT 50;
ALTER TABLE agents ADD COLUMN budgets TEXT NOT NULL DEFAULT '{}';

-- When something was last said there.
ALTER TABLE sessions ADD COLUMN updated_at BIGINT NOT NULL DEFAULT 0;
UPDATE sessions SET updated_at = created_at;
CREATE INDEX sessions_of_user ON sessions (user_id, updated_at, id);

-- What does not fit into the text of a message: tool calls, thinking, the provider's own form of a reply.
ALTER TABLE messages ADD COLUMN data TEXT;

-- What is shown live. A row holds the frames of a moment, a line each; its seq is that of the last of them.
CREATE TABLE events (
    session_id TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    seq BIGINT NOT NULL,
    -- Null: said outside of a run.
    run_id TEXT,
    -- Of this writing: one whose answer got lost is known by it when it is tried again.
    id TEXT NOT NULL,
    at BIGINT NOT NULL,
    frames BIGINT NOT NULL,
    data TEXT NOT NULL,
    PRIMARY KEY (session_id, seq)
);
INSERT INTO events (session_id, seq, run_id, id, at, frames, data)
SELECT session_id, seq, run_id, run_id || ':' || seq, at, 1, data FROM run_events;
DROP TABLE run_events;
CREATE INDEX events_at ON events (at);

-- What a run has used so far. Apart from runs, so that claiming and finishing stay light.
CREATE TABLE run_usage (
    run_id TEXT PRIMARY KEY,
    agent_id TEXT NOT NULL,
    user_id TEXT NOT NULL,
    at BIGINT NOT NULL,
    model TEXT NOT NULL,
    input_tokens BIGINT NOT NULL,
    output_tokens BIGINT NOT NULL,
    -- Millionths of a dollar; null: nobody knows the price.
    cost_micros BIGINT,
    model_calls BIGINT NOT NULL,
    tool_calls BIGINT NOT NULL
);
CREATE INDEX run_usage_of_agent ON run_usage (agent_id, at);

CREATE TABLE images (
    id TEXT PRIMARY KEY,
    session_id TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    media_type TEXT NOT NULL,
    content BYTEA NOT NULL
);
CREATE INDEX images_of_session ON images (session_id);

CREATE TABLE uploads (
    id TEXT PRIMARY KEY,
    session_id TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    name TEXT NOT NULL,
    path TEXT NOT NULL,
    size BIGINT NOT NULL,
    created_at BIGINT NOT NULL
);
CREATE INDEX uploads_of_session ON uploads (session_id);

-- Only a digest of a token is kept.
CREATE TABLE tokens (
    id TEXT PRIMARY KEY,
    user_id TEXT NOT NULL REFERENCES users (id),
    name TEXT NOT NULL,
    kind TEXT NOT NULL,
    scope TEXT NOT NULL,
    digest TEXT NOT NULL UNIQUE,
    created_at BIGINT NOT NULL,
    expires_at BIGINT,
    revoked_at BIGINT
);
CREATE INDEX tokens_of_user ON tokens (user_id);

-- One-time passes: a login link, a socket's ticket. Taken once, or gone when they expire.
CREATE TABLE passes (
    digest TEXT PRIMARY KEY,
    purpose TEXT NOT NULL,
    user_id TEXT NOT NULL REFERENCES users (id),
    -- The token it was made with; a revoked token's passes open nothing.
    token_id TEXT REFERENCES tokens (id),
    expires_at BIGINT NOT NULL
);

CREATE INDEX runs_of_user ON runs (user_id, queued_at, id);
CREATE INDEX wakes_of_user ON wakes (user_id, nominal_at, id);
