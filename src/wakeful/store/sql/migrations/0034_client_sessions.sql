-- Sessions that programs go on with through chat completions, which name a conversation by a header or by its history.
CREATE TABLE client_sessions (
    session_id TEXT PRIMARY KEY REFERENCES sessions (id) ON DELETE CASCADE,
    user_id TEXT NOT NULL REFERENCES users (id),
    -- A digest of the token, the agent and the client's own name for the conversation.
    client_key TEXT,
    -- A digest of the token, the agent and all messages up to the last one that the client sent.
    history_key TEXT NOT NULL,
    -- The run that answered it.
    run_id TEXT NOT NULL,
    at BIGINT NOT NULL
);
CREATE INDEX client_sessions_by_key ON client_sessions (user_id, client_key);
CREATE INDEX client_sessions_by_history ON client_sessions (user_id, history_key);
CREATE INDEX client_sessions_by_time ON client_sessions (at);
