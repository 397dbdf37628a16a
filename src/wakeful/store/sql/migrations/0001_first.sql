-- Instants are whole microseconds since 1970 UTC. Flags are 0 or 1. Structured values are JSON text.

CREATE TABLE users (
    id TEXT PRIMARY KEY,
    name TEXT NOT NULL,
    role TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    deleted_at BIGINT
);

CREATE TABLE agents (
    id TEXT PRIMARY KEY,
    user_id TEXT NOT NULL REFERENCES users (id),
    name TEXT NOT NULL,
    timezone TEXT NOT NULL,
    self_scheduling BIGINT NOT NULL,
    bounds TEXT NOT NULL,
    run_limit_seconds BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    deleted_at BIGINT
);

CREATE INDEX agents_of_user ON agents (user_id);

CREATE TABLE sessions (
    id TEXT PRIMARY KEY,
    agent_id TEXT NOT NULL REFERENCES agents (id),
    user_id TEXT NOT NULL REFERENCES users (id),
    title TEXT NOT NULL,
    origin_session_id TEXT,
    origin_wake_id TEXT,
    origin_label TEXT,
    last_position BIGINT NOT NULL DEFAULT 0,
    last_seq BIGINT NOT NULL DEFAULT 0,
    created_at BIGINT NOT NULL
);

CREATE TABLE messages (
    id TEXT PRIMARY KEY,
    session_id TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    position BIGINT NOT NULL,
    run_id TEXT,
    role TEXT NOT NULL,
    content TEXT NOT NULL,
    is_recall BIGINT NOT NULL DEFAULT 0,
    source TEXT,
    wake_id TEXT,
    label TEXT,
    created_at BIGINT NOT NULL,
    UNIQUE (session_id, position)
);

CREATE INDEX messages_of_run ON messages (run_id) WHERE run_id IS NOT NULL;

-- A wake keeps its intent; what happened is always in runs.
CREATE TABLE wakes (
    id TEXT PRIMARY KEY,
    kind TEXT NOT NULL,
    agent_id TEXT NOT NULL REFERENCES agents (id),
    user_id TEXT NOT NULL REFERENCES users (id),
    session_id TEXT,
    slot TEXT,
    call_type TEXT NOT NULL,
    interval_seconds BIGINT,
    cron TEXT,
    timezone TEXT NOT NULL,
    wall_clock TEXT,
    until BIGINT,
    max_runs BIGINT,
    nominal_at BIGINT NOT NULL,
    attempt_at BIGINT NOT NULL,
    first_due_at BIGINT,
    is_missed BIGINT NOT NULL,
    held_by TEXT,
    comment TEXT NOT NULL,
    instructions TEXT NOT NULL,
    context_views TEXT,
    session_config TEXT,
    priority TEXT NOT NULL,
    on_miss TEXT NOT NULL,
    scheduled_by TEXT NOT NULL,
    booked_by_run TEXT,
    ephemeral BIGINT NOT NULL,
    status TEXT NOT NULL,
    reason TEXT,
    error TEXT,
    delivery_phase TEXT,
    created_session_id TEXT,
    deferrals BIGINT NOT NULL,
    failures BIGINT NOT NULL,
    runs_started BIGINT NOT NULL,
    version BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL
);

-- The scheduler looks only here, so a million far-off wakes cost nothing.
CREATE INDEX wakes_due ON wakes (attempt_at, created_at, id) WHERE status = 'pending';
CREATE UNIQUE INDEX wakes_slot ON wakes (slot) WHERE slot IS NOT NULL AND status IN ('pending', 'queued');
CREATE INDEX wakes_of_session ON wakes (session_id) WHERE session_id IS NOT NULL;
CREATE INDEX wakes_held ON wakes (user_id, agent_id) WHERE held_by IS NOT NULL;
CREATE INDEX wakes_ephemeral ON wakes (ephemeral) WHERE ephemeral = 1;

-- One row covers one planned instant or a counted range of them. Rows outlive their session, without its text.
CREATE TABLE runs (
    id TEXT PRIMARY KEY,
    agent_id TEXT NOT NULL,
    user_id TEXT NOT NULL,
    session_id TEXT,
    wake_id TEXT,
    kind TEXT,
    trigger TEXT NOT NULL,
    scheduled_by TEXT NOT NULL,
    nominal_at BIGINT NOT NULL,
    covers BIGINT NOT NULL,
    priority TEXT NOT NULL,
    turn BIGINT NOT NULL,
    status TEXT NOT NULL,
    reason TEXT,
    error TEXT,
    queued_at BIGINT NOT NULL,
    started_at BIGINT,
    finished_at BIGINT,
    owner TEXT,
    lease_until BIGINT,
    fence BIGINT NOT NULL,
    attempt BIGINT NOT NULL,
    is_resuming BIGINT NOT NULL,
    stop_requested_at BIGINT
);

CREATE INDEX runs_queue ON runs (turn, nominal_at, id) WHERE status = 'queued';
CREATE INDEX runs_queue_of_session ON runs (session_id, nominal_at) WHERE status = 'queued';
CREATE INDEX runs_queue_of_users ON runs (session_id, queued_at) WHERE status = 'queued' AND trigger = 'message';
CREATE INDEX runs_queue_low ON runs (queued_at) WHERE status = 'queued' AND priority = 'low';
-- The last word on "one run per session": no claim can get past it.
CREATE UNIQUE INDEX runs_one_per_session ON runs (session_id) WHERE status = 'running';
CREATE INDEX runs_of_wake ON runs (wake_id, nominal_at) WHERE wake_id IS NOT NULL;
CREATE INDEX runs_of_agent ON runs (agent_id, queued_at);

CREATE TABLE run_events (
    session_id TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    seq BIGINT NOT NULL,
    run_id TEXT NOT NULL,
    at BIGINT NOT NULL,
    data TEXT NOT NULL,
    PRIMARY KEY (session_id, seq)
);

CREATE INDEX run_events_at ON run_events (at);

-- Kept only where something other than the plain course was decided; the plain course is in runs.
CREATE TABLE decisions (
    wake_id TEXT NOT NULL,
    nominal_at BIGINT NOT NULL,
    at BIGINT NOT NULL,
    position BIGINT NOT NULL,
    code TEXT NOT NULL,
    run_id TEXT,
    detail TEXT NOT NULL
);

CREATE INDEX decisions_of_wake ON decisions (wake_id, at, position);

-- agent_id is null: everything the user owns. A resumed pause keeps its row, with until set to that moment.
CREATE TABLE pauses (
    id TEXT PRIMARY KEY,
    user_id TEXT NOT NULL REFERENCES users (id),
    agent_id TEXT REFERENCES agents (id),
    started_at BIGINT NOT NULL,
    until BIGINT NOT NULL,
    reason TEXT NOT NULL
);

CREATE INDEX pauses_until ON pauses (until);
CREATE INDEX pauses_of_user ON pauses (user_id, until);

CREATE TABLE notifications (
    id TEXT PRIMARY KEY,
    user_id TEXT NOT NULL REFERENCES users (id),
    agent_id TEXT,
    code TEXT NOT NULL,
    title TEXT NOT NULL,
    body TEXT NOT NULL,
    wake_id TEXT,
    run_id TEXT,
    session_id TEXT,
    -- The same thing is told once: a second row with the same key is not kept.
    once_key TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    read_at BIGINT,
    UNIQUE (user_id, once_key)
);
