-- Names of MCP servers that are on for the agent, tools it asks before, agents it may hand over to.
ALTER TABLE agents ADD COLUMN mcp_servers TEXT NOT NULL DEFAULT '[]';
ALTER TABLE agents ADD COLUMN ask_before TEXT NOT NULL DEFAULT '[]';
ALTER TABLE agents ADD COLUMN profiles TEXT NOT NULL DEFAULT '[]';
-- Whether the agent may write its own skills and its AGENTS.md.
ALTER TABLE agents ADD COLUMN may_write_skills BIGINT NOT NULL DEFAULT 0;

-- Null: all tools of whichever agent works there. Else no run there has more, because an agent handed over.
ALTER TABLE sessions ADD COLUMN tool_limit TEXT;

-- Calls that a person was asked about. Gone with their session, as all text is.
CREATE TABLE approvals (
    run_id TEXT NOT NULL,
    call_id TEXT NOT NULL,
    user_id TEXT NOT NULL,
    session_id TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    tool TEXT NOT NULL,
    args TEXT NOT NULL,
    status TEXT NOT NULL,
    note TEXT,
    asked_at BIGINT NOT NULL,
    answered_at BIGINT,
    PRIMARY KEY (run_id, call_id)
);
CREATE INDEX approvals_of_session ON approvals (session_id);
