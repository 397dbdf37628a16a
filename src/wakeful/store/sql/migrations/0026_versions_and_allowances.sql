-- The run that replaced this message by a retry or an edit; null: the message is part of the conversation.
ALTER TABLE messages ADD COLUMN superseded_by TEXT;
-- The agent that makes the call: another than the run's after a handover.
ALTER TABLE approvals ADD COLUMN agent_id TEXT;
-- What the call would do, in the host's words; empty: asked before 0.2.
ALTER TABLE approvals ADD COLUMN sentence TEXT NOT NULL DEFAULT '';
CREATE INDEX approvals_waiting ON approvals (user_id) WHERE status = 'pending';

-- Tools that a person lets an agent call in a session without being asked each time. Gone with their session.
CREATE TABLE allowances (
    id TEXT PRIMARY KEY,
    user_id TEXT NOT NULL,
    agent_id TEXT NOT NULL,
    session_id TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    tool TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    UNIQUE (session_id, agent_id, tool)
);
CREATE INDEX allowances_of_agent ON allowances (agent_id, user_id);
