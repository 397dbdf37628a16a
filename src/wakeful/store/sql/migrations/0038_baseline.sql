-- The schema of 0.2.0, as far as both databases have it. Instants are whole microseconds since 1970 UTC. Flags are 0 or
-- 1. Structured values are JSON text.

-- People.
CREATE TABLE users (
    id TEXT PRIMARY KEY,
    name TEXT NOT NULL,
    role TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    deleted_at BIGINT,
    -- A person's own zone, told by their browser or command line. Null: not known.
    timezone TEXT
);

CREATE TABLE agents (
    id TEXT PRIMARY KEY,
    user_id TEXT NOT NULL REFERENCES users (id),
    name TEXT NOT NULL,
    -- Null: an agent uses its user's zone.
    timezone TEXT,
    self_scheduling BIGINT NOT NULL,
    bounds TEXT NOT NULL,
    run_limit_seconds BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    deleted_at BIGINT,
    -- What an agent is told and may use.
    description TEXT NOT NULL DEFAULT '',
    -- Null: the server's own model.
    model TEXT,
    system_prompt TEXT NOT NULL DEFAULT '',
    toolsets TEXT NOT NULL DEFAULT '[]',
    planning BIGINT NOT NULL DEFAULT 0,
    thinking_level TEXT,
    max_iterations BIGINT NOT NULL DEFAULT 50,
    budgets TEXT NOT NULL DEFAULT '{}',
    -- The agents that an agent may give a task to.
    subagents TEXT NOT NULL DEFAULT '[]',
    -- Names of MCP servers that are on for the agent, tools it asks before, agents it may hand over to.
    mcp_servers TEXT NOT NULL DEFAULT '[]',
    ask_before TEXT NOT NULL DEFAULT '[]',
    profiles TEXT NOT NULL DEFAULT '[]',
    -- Whether the agent may write its own skills and its AGENTS.md.
    may_write_skills BIGINT NOT NULL DEFAULT 0,
    -- How much the agent's own database may hold, in mebibytes. Null: as the server's settings say.
    database_mb BIGINT,
    -- Models that schedules of the agent may ask for besides its own.
    allowed_models TEXT NOT NULL DEFAULT '[]',
    -- 1: the page is still to ask whether the agent should use its user's zone.
    offers_zone BIGINT NOT NULL DEFAULT 0,
    -- 0: the files that are there count as accepted at the next start.
    files_compared BIGINT NOT NULL DEFAULT 1
);
CREATE INDEX agents_of_user ON agents (user_id);
CREATE INDEX agents_with_mcp_servers ON agents (id) WHERE mcp_servers <> '[]' AND deleted_at IS NULL;

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
    created_at BIGINT NOT NULL,
    -- When something was last said there.
    updated_at BIGINT NOT NULL DEFAULT 0,
    -- Null: all tools of whichever agent works there. Else no run there has more, because an agent handed over.
    tool_limit TEXT,
    -- Until then no queued wake of the session starts. Set at a run's end if someone is there.
    held_until BIGINT,
    -- When a wake's run last ended there with someone present: the next one has been first in line since.
    woken_at BIGINT
);
CREATE INDEX sessions_of_user ON sessions (user_id, updated_at, id);
CREATE INDEX sessions_held ON sessions (held_until) WHERE held_until IS NOT NULL;

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
    -- What does not fit into the text of a message: tool calls, thinking, the provider's own form of a reply.
    data TEXT,
    -- The run that replaced this message by a retry or an edit; null: the message is part of the conversation.
    superseded_by TEXT,
    UNIQUE (session_id, position)
);
CREATE INDEX messages_of_run ON messages (run_id) WHERE run_id IS NOT NULL;
CREATE INDEX messages_of_people ON messages (session_id, created_at) WHERE role = 'user' AND wake_id IS NULL;

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
    -- Null: the wake needs none.
    timezone TEXT,
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
    updated_at BIGINT NOT NULL,
    -- The tools of the run that booked it, which the run it wakes cannot exceed. Null: no limit, as a person booked it.
    tools TEXT,
    muted BIGINT NOT NULL DEFAULT 0,
    -- When a person last had a hand in it.
    seen_at BIGINT,
    -- The time that was asked for, why it was moved, and what was booked: {"requested", "requested_at", "moved_by",
    -- "final"}.
    booking TEXT,
    -- A person's address outside that runs of a wake are reported to: a secret, and the part of it that may be shown.
    ping_url TEXT,
    ping_to TEXT,
    -- How the booking came in, and the token or hook behind it; null: before this was recorded. The name is a copy:
    -- tokens and hooks are deleted, and the history stays.
    door TEXT,
    token_id TEXT,
    token_name TEXT,
    -- The span that booked it, from which its trace goes on, as W3C traceparent.
    traceparent TEXT
);
-- The scheduler looks only here, so a million far-off wakes cost nothing.
CREATE INDEX wakes_due ON wakes (attempt_at, created_at, id) WHERE status = 'pending';
CREATE UNIQUE INDEX wakes_slot ON wakes (slot) WHERE slot IS NOT NULL AND status IN ('pending', 'queued');
CREATE INDEX wakes_of_session ON wakes (session_id) WHERE session_id IS NOT NULL;
CREATE INDEX wakes_held ON wakes (user_id, agent_id) WHERE held_by IS NOT NULL;
CREATE INDEX wakes_ephemeral ON wakes (ephemeral) WHERE ephemeral = 1;
CREATE INDEX wakes_of_user ON wakes (user_id, nominal_at, id);
CREATE INDEX wakes_recurring_recalls ON wakes (created_at)
WHERE status = 'pending' AND kind = 'recall' AND call_type = 'recurring';
-- A run's history shows what the run booked.
CREATE INDEX wakes_booked_by_run ON wakes (booked_by_run) WHERE booked_by_run IS NOT NULL;
-- For the brake on the tokens of programs.
CREATE INDEX wakes_of_token ON wakes (token_id, created_at) WHERE door IN ('mcp', 'v1', 'hook');

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
    stop_requested_at BIGINT,
    -- What people should know about a run that succeeded: did_nothing, or why it ended early.
    note TEXT,
    -- A start that a crash cut off before it reached a model or tool call spends no attempt, and is counted apart.
    has_called BIGINT NOT NULL DEFAULT 0,
    lost_starts BIGINT NOT NULL DEFAULT 0,
    -- The name of the node that claimed the run last.
    node TEXT,
    has_ping BIGINT NOT NULL DEFAULT 0,
    -- As in wakes.
    door TEXT,
    token_id TEXT,
    token_name TEXT,
    -- The span of its last attempt, and before the first one that of its wake.
    traceparent TEXT
);
CREATE INDEX runs_queue ON runs (turn, nominal_at, id) WHERE status = 'queued';
CREATE INDEX runs_queue_of_session ON runs (session_id, nominal_at) WHERE status = 'queued';
CREATE INDEX runs_queue_of_users ON runs (session_id, queued_at) WHERE status = 'queued' AND trigger = 'message';
CREATE INDEX runs_queue_low ON runs (queued_at) WHERE status = 'queued' AND priority = 'low';
-- The last word on "one run per session": no claim can get past it.
CREATE UNIQUE INDEX runs_one_per_session ON runs (session_id) WHERE status = 'running';
CREATE INDEX runs_of_wake ON runs (wake_id, nominal_at) WHERE wake_id IS NOT NULL;
CREATE INDEX runs_of_agent ON runs (agent_id, queued_at);
CREATE INDEX runs_of_user ON runs (user_id, queued_at, id);
-- Which sessions ended badly is asked of every session in a list.
CREATE INDEX runs_failed ON runs (session_id, finished_at) WHERE status IN ('failed', 'interrupted');
CREATE INDEX runs_of_token ON runs (token_id, queued_at) WHERE door IN ('mcp', 'v1', 'hook');

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
    -- When a node had sent it to the channels.
    told_at BIGINT,
    -- The saved view that shows more, if an agent named one; by its name, since a database is its agent's own.
    view_ref TEXT,
    -- When a node took it to send it to the channels. What was begun and not done is begun once more.
    taken_at BIGINT,
    -- Instants in the text of a notice, by name: they are written in the zone of the person who reads it.
    times TEXT,
    -- When what a notice asks for was done: an agent without a next run has one again.
    resolved_at BIGINT,
    UNIQUE (user_id, once_key)
);
CREATE INDEX notifications_untold ON notifications (created_at) WHERE told_at IS NULL;

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
    revoked_at BIGINT,
    -- The digest of the secret that a browser's page keeps in its storage and sends beside the cookie. A browser's token
    -- without one is of 0.1, and lets nobody in.
    page_digest TEXT
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

-- Ways to reach a person outside of the inbox. The address is a secret: it never leaves but to be sent to.
CREATE TABLE channels (
    id TEXT PRIMARY KEY,
    user_id TEXT NOT NULL REFERENCES users (id),
    name TEXT NOT NULL,
    url TEXT NOT NULL,
    shown TEXT NOT NULL,
    enabled BIGINT NOT NULL,
    hour_from BIGINT,
    hour_count BIGINT NOT NULL,
    last_sent_at BIGINT,
    last_error TEXT,
    last_error_at BIGINT,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    UNIQUE (user_id, name)
);

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
    -- The agent that makes the call: another than the run's after a handover.
    agent_id TEXT,
    -- What the call would do, in the host's words; empty: asked before 0.2.
    sentence TEXT NOT NULL DEFAULT '',
    PRIMARY KEY (run_id, call_id)
);
CREATE INDEX approvals_of_session ON approvals (session_id);
CREATE INDEX approvals_waiting ON approvals (user_id) WHERE status = 'pending';

-- How far the changelog of an agent's own database had come when this server last wrote there: its last entry and that
-- one's hash. A program that edits the agent's file cannot reach it, so a changelog that was cut off is noticed.
CREATE TABLE changelog_heads (
    agent_id TEXT PRIMARY KEY,
    entry BIGINT NOT NULL,
    hash TEXT NOT NULL
);

-- Who is in a session, so that a person's message goes before queued wakes. The source is a node with an open socket
-- there, or 'message' for someone who wrote. A row that is not renewed counts no more once `until` has passed.
CREATE TABLE presence (
    session_id TEXT NOT NULL,
    source TEXT NOT NULL,
    until BIGINT NOT NULL,
    PRIMARY KEY (session_id, source)
);

-- Data directories of the nodes on this store.
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
    seen_at BIGINT NOT NULL,
    -- What people see of a node, and what decides about the runs that it claims.
    name TEXT NOT NULL DEFAULT '',
    version TEXT NOT NULL DEFAULT '',
    started_at BIGINT NOT NULL DEFAULT 0,
    is_draining BIGINT NOT NULL DEFAULT 0,
    -- JSON list of names in the node's settings.
    mcp_servers TEXT NOT NULL DEFAULT '[]',
    -- The owner's token in the node's settings or token file: it is not revoked while the node runs.
    token_id TEXT
);
CREATE INDEX nodes_of_directory ON nodes (directory_id, seen_at);

-- Agents whose files 0.1 had left in a data directory, and 0.2 has not moved.
CREATE TABLE agent_directories (
    agent_id TEXT PRIMARY KEY REFERENCES agents (id),
    directory_id TEXT NOT NULL REFERENCES directories (id)
);
CREATE INDEX agents_of_directory ON agent_directories (directory_id);

-- Programs of MCP servers that were in the settings file before this server could confine them. Such a program runs
-- unconfined until its entry says what it reaches.
CREATE TABLE unconfined_mcp_servers (name TEXT PRIMARY KEY);

-- Which contents of the files that instruct an agent (AGENTS.md, its skills) a person saved or accepted. Others stay out
-- of prompts: a program that the agent started could have written them.
CREATE TABLE accepted_files (
    agent_id TEXT NOT NULL,
    path TEXT NOT NULL,
    digest TEXT NOT NULL,
    accepted_at BIGINT NOT NULL,
    PRIMARY KEY (agent_id, path, digest)
);

-- Wishes to stop a run whose row could not be written, because a node that does not answer holds it. They are carried
-- out as soon as that row is free. Not bound to runs by a reference: that would wait for the same lock.
CREATE TABLE stop_wishes (
    run_id TEXT PRIMARY KEY,
    requested_at BIGINT NOT NULL
);

-- Models that an owner added. The key is encrypted with the device key; provider and address are authenticated with it.
CREATE TABLE models (
    name TEXT PRIMARY KEY,
    provider TEXT NOT NULL,
    model TEXT NOT NULL,
    address TEXT NOT NULL,
    encrypted_key TEXT,
    source TEXT NOT NULL,
    context_window BIGINT,
    output_limit BIGINT,
    input_price DOUBLE PRECISION,
    output_price DOUBLE PRECISION,
    tool_calls TEXT,
    images BIGINT,
    thinking BIGINT,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL
);

-- What the last test of each model found out, also of those that the settings name.
CREATE TABLE model_tests (
    name TEXT PRIMARY KEY,
    subject TEXT NOT NULL,
    tool_calls TEXT NOT NULL,
    tested_at BIGINT NOT NULL
);

-- The model of agents without one of their own, unless the settings name it: one row with the id 1, or none.
CREATE TABLE default_model (id BIGINT PRIMARY KEY, model TEXT NOT NULL);

-- Sessions and messages with ids from these on are indexed; null: all of them.
CREATE TABLE search_progress (
    id BIGINT PRIMARY KEY,
    sessions_before TEXT,
    messages_before TEXT,
    next_number BIGINT NOT NULL,
    done BIGINT NOT NULL,
    total BIGINT NOT NULL
);
INSERT INTO search_progress (id, next_number, done, total) VALUES (1, 0, 0, 0);

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

-- Browsers that get push messages. The endpoint is a secret: it never leaves but to be sent to.
CREATE TABLE push_subscriptions (
    id TEXT PRIMARY KEY,
    user_id TEXT NOT NULL REFERENCES users (id),
    token_id TEXT NOT NULL,
    name TEXT NOT NULL,
    endpoint TEXT NOT NULL UNIQUE,
    service TEXT NOT NULL,
    p256dh TEXT NOT NULL,
    auth TEXT NOT NULL,
    contact TEXT,
    hour_from BIGINT,
    hour_count BIGINT NOT NULL,
    wait_until BIGINT,
    last_sent_at BIGINT,
    last_error TEXT,
    last_error_at BIGINT,
    created_at BIGINT NOT NULL
);
CREATE INDEX push_subscriptions_of_user ON push_subscriptions (user_id);

-- The key that signs push messages (VAPID), encrypted with the device key: one row with the id 1, for all nodes.
CREATE TABLE push_key (
    id BIGINT PRIMARY KEY,
    public_key TEXT NOT NULL,
    encrypted_key TEXT NOT NULL,
    created_at BIGINT NOT NULL
);

-- A copy of an embedded store in PostgreSQL, made by `wakeful move`. No server starts here while it is unfinished or
-- undone.
CREATE TABLE store_moves (
    id TEXT PRIMARY KEY,
    -- The data directory of the embedded store.
    directory_id TEXT NOT NULL,
    started_at BIGINT NOT NULL,
    finished_at BIGINT,
    undone_at BIGINT,
    -- JSON: the last rowid and the number of rows copied, by table.
    progress TEXT NOT NULL
);

-- The last heartbeat ping of all nodes that share this store: one row at most.
CREATE TABLE heartbeat_pings (
    id BIGINT PRIMARY KEY,
    pinged_at BIGINT NOT NULL,
    is_ready BIGINT NOT NULL
);

-- The names that programs give their bookings, so that a repeated request books once.
CREATE TABLE booking_keys (
    token_id TEXT NOT NULL,
    key TEXT NOT NULL,
    wake_id TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (token_id, key)
);
CREATE INDEX booking_keys_by_age ON booking_keys (created_at);

-- Incoming hooks: addresses at which other systems start work. Secrets are encrypted with the device key.
CREATE TABLE hooks (
    id TEXT PRIMARY KEY,
    user_id TEXT NOT NULL REFERENCES users (id),
    agent_id TEXT NOT NULL REFERENCES agents (id),
    session_id TEXT,
    name TEXT NOT NULL,
    scheme TEXT NOT NULL,
    encrypted_secret TEXT NOT NULL,
    encrypted_old_secret TEXT,
    old_until BIGINT,
    events TEXT NOT NULL,
    instructions TEXT NOT NULL,
    tools TEXT,
    coalesce_seconds BIGINT NOT NULL,
    per_minute BIGINT NOT NULL,
    mode TEXT NOT NULL,
    enabled BIGINT NOT NULL,
    last_at BIGINT,
    refused_at BIGINT,
    refused_why TEXT,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL
);
CREATE UNIQUE INDEX hooks_of_user ON hooks (user_id, name);

-- What a hook was sent by someone who has its secret. The payload is deleted before the rest of the row.
CREATE TABLE hook_deliveries (
    id TEXT PRIMARY KEY,
    hook_id TEXT NOT NULL REFERENCES hooks (id) ON DELETE CASCADE,
    delivery_id TEXT NOT NULL,
    sha256 TEXT NOT NULL,
    event TEXT,
    at BIGINT NOT NULL,
    outcome TEXT NOT NULL,
    wake_id TEXT,
    run_id TEXT,
    size BIGINT NOT NULL,
    payload BYTEA
);
CREATE UNIQUE INDEX hook_deliveries_by_sender ON hook_deliveries (hook_id, delivery_id);
CREATE INDEX hook_deliveries_by_body ON hook_deliveries (hook_id, sha256);
CREATE INDEX hook_deliveries_of_hook ON hook_deliveries (hook_id, at);
CREATE INDEX hook_deliveries_of_wake ON hook_deliveries (wake_id) WHERE wake_id IS NOT NULL;
CREATE INDEX hook_deliveries_by_age ON hook_deliveries (at);

-- Outgoing webhooks: addresses of other systems that are told of events. Address and secret are secrets; the secret is
-- encrypted with the device key.
CREATE TABLE webhooks (
    id TEXT PRIMARY KEY,
    user_id TEXT NOT NULL REFERENCES users (id),
    agent_id TEXT,
    name TEXT NOT NULL,
    url TEXT NOT NULL,
    shown TEXT NOT NULL,
    encrypted_secret TEXT NOT NULL,
    encrypted_old_secret TEXT,
    old_until BIGINT,
    events TEXT NOT NULL,
    enabled BIGINT NOT NULL,
    failing_since BIGINT,
    last_sent_at BIGINT,
    last_error TEXT,
    last_error_at BIGINT,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL
);
CREATE UNIQUE INDEX webhooks_of_user ON webhooks (user_id, name);

-- One event for one webhook, added in the transaction in which it happened.
CREATE TABLE webhook_messages (
    id TEXT PRIMARY KEY,
    webhook_id TEXT NOT NULL REFERENCES webhooks (id) ON DELETE CASCADE,
    event TEXT NOT NULL,
    about TEXT NOT NULL,
    data TEXT NOT NULL,
    status TEXT NOT NULL,
    attempts BIGINT NOT NULL,
    next_at BIGINT,
    taken_at BIGINT,
    last_status BIGINT,
    last_error TEXT,
    created_at BIGINT NOT NULL,
    settled_at BIGINT
);
CREATE UNIQUE INDEX webhook_messages_once ON webhook_messages (webhook_id, about);
CREATE INDEX webhook_messages_due ON webhook_messages (next_at) WHERE status = 'pending';
CREATE INDEX webhook_messages_of_webhook ON webhook_messages (webhook_id, created_at);
CREATE INDEX webhook_messages_by_age ON webhook_messages (created_at);

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
