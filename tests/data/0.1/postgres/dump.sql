SET statement_timeout = 0;
SET lock_timeout = 0;
SET idle_in_transaction_session_timeout = 0;
SET client_encoding = 'UTF8';
SET standard_conforming_strings = on;
SELECT pg_catalog.set_config('search_path', '', false);
SET check_function_bodies = false;
SET xmloption = content;
SET client_min_messages = warning;
SET row_security = off;
SET default_tablespace = '';
SET default_table_access_method = heap;
CREATE TABLE public.agents (
    id text NOT NULL,
    user_id text NOT NULL,
    name text NOT NULL,
    timezone text NOT NULL,
    self_scheduling bigint NOT NULL,
    bounds text NOT NULL,
    run_limit_seconds bigint NOT NULL,
    created_at bigint NOT NULL,
    updated_at bigint NOT NULL,
    deleted_at bigint,
    description text DEFAULT ''::text NOT NULL,
    model text,
    system_prompt text DEFAULT ''::text NOT NULL,
    toolsets text DEFAULT '[]'::text NOT NULL,
    planning bigint DEFAULT 0 NOT NULL,
    thinking_level text,
    max_iterations bigint DEFAULT 50 NOT NULL,
    budgets text DEFAULT '{}'::text NOT NULL,
    subagents text DEFAULT '[]'::text NOT NULL,
    mcp_servers text DEFAULT '[]'::text NOT NULL,
    ask_before text DEFAULT '[]'::text NOT NULL,
    profiles text DEFAULT '[]'::text NOT NULL,
    may_write_skills bigint DEFAULT 0 NOT NULL,
    database_mb bigint
);
CREATE TABLE public.approvals (
    run_id text NOT NULL,
    call_id text NOT NULL,
    user_id text NOT NULL,
    session_id text NOT NULL,
    tool text NOT NULL,
    args text NOT NULL,
    status text NOT NULL,
    note text,
    asked_at bigint NOT NULL,
    answered_at bigint
);
CREATE TABLE public.changelog_heads (
    agent_id text NOT NULL,
    entry bigint NOT NULL,
    hash text NOT NULL
);
CREATE TABLE public.channels (
    id text NOT NULL,
    user_id text NOT NULL,
    name text NOT NULL,
    url text NOT NULL,
    shown text NOT NULL,
    enabled bigint NOT NULL,
    hour_from bigint,
    hour_count bigint NOT NULL,
    last_sent_at bigint,
    last_error text,
    last_error_at bigint,
    created_at bigint NOT NULL,
    updated_at bigint NOT NULL
);
CREATE TABLE public.decisions (
    wake_id text NOT NULL,
    nominal_at bigint NOT NULL,
    at bigint NOT NULL,
    "position" bigint NOT NULL,
    code text NOT NULL,
    run_id text,
    detail text NOT NULL
);
CREATE TABLE public.events (
    session_id text NOT NULL,
    seq bigint NOT NULL,
    run_id text,
    id text NOT NULL,
    at bigint NOT NULL,
    frames bigint NOT NULL,
    data text NOT NULL
);
CREATE TABLE public.images (
    id text NOT NULL,
    session_id text NOT NULL,
    media_type text NOT NULL,
    content bytea NOT NULL
);
CREATE TABLE public.messages (
    id text NOT NULL,
    session_id text NOT NULL,
    "position" bigint NOT NULL,
    run_id text,
    role text NOT NULL,
    content text NOT NULL,
    is_recall bigint DEFAULT 0 NOT NULL,
    source text,
    wake_id text,
    label text,
    created_at bigint NOT NULL,
    data text
);
CREATE TABLE public.migrations (
    number bigint NOT NULL,
    name text NOT NULL,
    applied_at bigint NOT NULL
);
CREATE TABLE public.notifications (
    id text NOT NULL,
    user_id text NOT NULL,
    agent_id text,
    code text NOT NULL,
    title text NOT NULL,
    body text NOT NULL,
    wake_id text,
    run_id text,
    session_id text,
    once_key text NOT NULL,
    created_at bigint NOT NULL,
    read_at bigint,
    told_at bigint,
    view_ref text,
    taken_at bigint
);
CREATE TABLE public.passes (
    digest text NOT NULL,
    purpose text NOT NULL,
    user_id text NOT NULL,
    token_id text,
    expires_at bigint NOT NULL
);
CREATE TABLE public.pauses (
    id text NOT NULL,
    user_id text NOT NULL,
    agent_id text,
    started_at bigint NOT NULL,
    until bigint NOT NULL,
    reason text NOT NULL
);
CREATE TABLE public.run_usage (
    run_id text NOT NULL,
    agent_id text NOT NULL,
    user_id text NOT NULL,
    at bigint NOT NULL,
    model text NOT NULL,
    input_tokens bigint NOT NULL,
    output_tokens bigint NOT NULL,
    cost_micros bigint,
    model_calls bigint NOT NULL,
    tool_calls bigint NOT NULL
);
CREATE TABLE public.runs (
    id text NOT NULL,
    agent_id text NOT NULL,
    user_id text NOT NULL,
    session_id text,
    wake_id text,
    kind text,
    trigger text NOT NULL,
    scheduled_by text NOT NULL,
    nominal_at bigint NOT NULL,
    covers bigint NOT NULL,
    priority text NOT NULL,
    turn bigint NOT NULL,
    status text NOT NULL,
    reason text,
    error text,
    queued_at bigint NOT NULL,
    started_at bigint,
    finished_at bigint,
    owner text,
    lease_until bigint,
    fence bigint NOT NULL,
    attempt bigint NOT NULL,
    is_resuming bigint NOT NULL,
    stop_requested_at bigint
);
CREATE TABLE public.wakes (
    id text NOT NULL,
    kind text NOT NULL,
    agent_id text NOT NULL,
    user_id text NOT NULL,
    session_id text,
    slot text,
    call_type text NOT NULL,
    interval_seconds bigint,
    cron text,
    timezone text NOT NULL,
    wall_clock text,
    until bigint,
    max_runs bigint,
    nominal_at bigint NOT NULL,
    attempt_at bigint NOT NULL,
    first_due_at bigint,
    is_missed bigint NOT NULL,
    held_by text,
    comment text NOT NULL,
    instructions text NOT NULL,
    context_views text,
    session_config text,
    priority text NOT NULL,
    on_miss text NOT NULL,
    scheduled_by text NOT NULL,
    booked_by_run text,
    ephemeral bigint NOT NULL,
    status text NOT NULL,
    reason text,
    error text,
    delivery_phase text,
    created_session_id text,
    deferrals bigint NOT NULL,
    failures bigint NOT NULL,
    runs_started bigint NOT NULL,
    version bigint NOT NULL,
    created_at bigint NOT NULL,
    updated_at bigint NOT NULL,
    tools text,
    muted bigint DEFAULT 0 NOT NULL,
    seen_at bigint
);
CREATE VIEW public.session_recalls AS
 SELECT wakes.id,
    wakes.session_id,
    wakes.call_type,
    to_timestamp((((wakes.nominal_at)::numeric / 1000000.0))::double precision) AS trigger_at,
    wakes.interval_seconds,
    wakes.comment AS internal_comment,
    wakes.instructions AS additional_context_message,
        CASE
            WHEN (wakes.status = ANY (ARRAY['pending'::text, 'queued'::text])) THEN 'pending'::text
            WHEN (wakes.status = ANY (ARRAY['running'::text, 'fired'::text])) THEN 'fired'::text
            ELSE 'cancelled'::text
        END AS status,
    to_timestamp((((wakes.created_at)::numeric / 1000000.0))::double precision) AS created_at,
    to_timestamp((((wakes.updated_at)::numeric / 1000000.0))::double precision) AS updated_at
   FROM public.wakes
  WHERE (wakes.kind = 'recall'::text);
CREATE TABLE public.sessions (
    id text NOT NULL,
    agent_id text NOT NULL,
    user_id text NOT NULL,
    title text NOT NULL,
    origin_session_id text,
    origin_wake_id text,
    origin_label text,
    last_position bigint DEFAULT 0 NOT NULL,
    last_seq bigint DEFAULT 0 NOT NULL,
    created_at bigint NOT NULL,
    updated_at bigint DEFAULT 0 NOT NULL,
    tool_limit text
);
CREATE TABLE public.tokens (
    id text NOT NULL,
    user_id text NOT NULL,
    name text NOT NULL,
    kind text NOT NULL,
    scope text NOT NULL,
    digest text NOT NULL,
    created_at bigint NOT NULL,
    expires_at bigint,
    revoked_at bigint
);
CREATE TABLE public.uploads (
    id text NOT NULL,
    session_id text NOT NULL,
    name text NOT NULL,
    path text NOT NULL,
    size bigint NOT NULL,
    created_at bigint NOT NULL
);
CREATE TABLE public.users (
    id text NOT NULL,
    name text NOT NULL,
    role text NOT NULL,
    created_at bigint NOT NULL,
    deleted_at bigint
);
INSERT INTO public.agents (id, user_id, name, timezone, self_scheduling, bounds, run_limit_seconds, created_at, updated_at, deleted_at, description, model, system_prompt, toolsets, planning, thinking_level, max_iterations, budgets, subagents, mcp_servers, ask_before, profiles, may_write_skills, database_mb) VALUES ('00000000-0000-829a-81a3-fc56f6ce7a79', '00000000-0000-8000-8000-000000000001', 'Wakeful', 'Etc/UTC', 1, '{"mode":"reactive","max_horizon_seconds":86400,"min_interval_seconds":300,"daily_cap":48,"quiet_from":null,"quiet_to":null,"days":[0,1,2,3,4,5,6]}', 1800, 1794872258695254, 1794872258695254, NULL, 'A helper that can come back by itself.', NULL, '', '["recall","scheduler","next_run","database","notify","files","web","subagents"]', 0, NULL, 50, '{"run_tokens":null,"run_cost_micros":null,"day_tokens":null,"day_cost_micros":null}', '["00000000-0000-829a-81a3-fc56f6ce7a79"]', '[]', '[]', '[]', 0, NULL);
INSERT INTO public.agents (id, user_id, name, timezone, self_scheduling, bounds, run_limit_seconds, created_at, updated_at, deleted_at, description, model, system_prompt, toolsets, planning, thinking_level, max_iterations, budgets, subagents, mcp_servers, ask_before, profiles, may_write_skills, database_mb) VALUES ('01a1e6b9-3dc3-7902-9d0d-de3c4470bdf6', '00000000-0000-8000-8000-000000000001', 'Janitor', 'Europe/Berlin', 0, '{"mode":"reactive","max_horizon_seconds":86400,"min_interval_seconds":300,"daily_cap":48,"quiet_from":null,"quiet_to":null,"days":[0,1,2,3,4,5,6]}', 1800, 1794872262083761, 1794872262083761, NULL, '', NULL, '', '["files","shell"]', 0, NULL, 50, '{"run_tokens":null,"run_cost_micros":null,"day_tokens":null,"day_cost_micros":null}', '[]', '[]', '[]', '[]', 0, NULL);
INSERT INTO public.agents (id, user_id, name, timezone, self_scheduling, bounds, run_limit_seconds, created_at, updated_at, deleted_at, description, model, system_prompt, toolsets, planning, thinking_level, max_iterations, budgets, subagents, mcp_servers, ask_before, profiles, may_write_skills, database_mb) VALUES ('01a1e6b9-3e83-74af-9df2-3a23a0c83917', '01a1e6b9-3df4-773f-a643-6a77a535af2a', 'Cook', 'UTC', 0, '{"mode":"reactive","max_horizon_seconds":86400,"min_interval_seconds":300,"daily_cap":48,"quiet_from":null,"quiet_to":null,"days":[0,1,2,3,4,5,6]}', 1800, 1794872262275823, 1794872262275823, NULL, '', NULL, '', '["files","web"]', 0, NULL, 50, '{"run_tokens":null,"run_cost_micros":null,"day_tokens":null,"day_cost_micros":null}', '[]', '[]', '[]', '[]', 0, NULL);
INSERT INTO public.changelog_heads (agent_id, entry, hash) VALUES ('00000000-0000-829a-81a3-fc56f6ce7a79', 26, '9a6392265032e2c9b56cb5b4f8f24c8d5b90591dcec6a13266cecb1205c23aab');
INSERT INTO public.channels (id, user_id, name, url, shown, enabled, hour_from, hour_count, last_sent_at, last_error, last_error_at, created_at, updated_at) VALUES ('01a1e6b9-3f53-7d86-a959-3defc8a25721', '00000000-0000-8000-8000-000000000001', 'hook', 'json://example.org/hook', 'json://example.org', 1, NULL, 0, NULL, NULL, NULL, 1794872262483964, 1794872262483964);
INSERT INTO public.events (session_id, seq, run_id, id, at, frames, data) VALUES ('01a1e6b9-320d-7c37-a6f5-1b5ee450de7b', 1, '01a1e6b9-3254-7770-b5dc-7c9ecbed38f1', '01a1e6b9-325b-7ce5-8e13-4ad73e37a485', 1794872259163981, 1, '{"type":"stream_start","run_id":"01a1e6b9-3254-7770-b5dc-7c9ecbed38f1"}');
INSERT INTO public.events (session_id, seq, run_id, id, at, frames, data) VALUES ('01a1e6b9-320d-7c37-a6f5-1b5ee450de7b', 6, '01a1e6b9-3254-7770-b5dc-7c9ecbed38f1', '01a1e6b9-32fa-78df-ad04-d23b97cfb1f5', 1794872259322743, 5, '{"type":"thinking_delta","delta":"This is ","run_id":"01a1e6b9-3254-7770-b5dc-7c9ecbed38f1"}
{"type":"thinking_delta","delta":"the demo ","run_id":"01a1e6b9-3254-7770-b5dc-7c9ecbed38f1"}
{"type":"thinking_delta","delta":"model. I ","run_id":"01a1e6b9-3254-7770-b5dc-7c9ecbed38f1"}
{"type":"thinking_delta","delta":"know this ","run_id":"01a1e6b9-3254-7770-b5dc-7c9ecbed38f1"}
{"type":"thinking_delta","delta":"sentence: it ","run_id":"01a1e6b9-3254-7770-b5dc-7c9ecbed38f1"}');
INSERT INTO public.events (session_id, seq, run_id, id, at, frames, data) VALUES ('01a1e6b9-320d-7c37-a6f5-1b5ee450de7b', 8, '01a1e6b9-3254-7770-b5dc-7c9ecbed38f1', '01a1e6b9-3365-7abc-a0a3-4a4a57f6fc33', 1794872259429668, 2, '{"type":"thinking_delta","delta":"means write_file.","run_id":"01a1e6b9-3254-7770-b5dc-7c9ecbed38f1"}
{"type":"thinking_end","run_id":"01a1e6b9-3254-7770-b5dc-7c9ecbed38f1"}');
INSERT INTO public.events (session_id, seq, run_id, id, at, frames, data) VALUES ('01a1e6b9-320d-7c37-a6f5-1b5ee450de7b', 9, '01a1e6b9-3254-7770-b5dc-7c9ecbed38f1', '01a1e6b9-336c-7767-960d-b2e902aa2890', 1794872259436583, 1, '{"type":"tool_started","is_subagent":false,"tool":"write_file","args":{"content":"water the tomatoes","path":"notes.txt"},"call_id":"pyd_ai_f5a4d6e3b0eb434d9888183987fab6f1","run_id":"01a1e6b9-3254-7770-b5dc-7c9ecbed38f1"}');
INSERT INTO public.events (session_id, seq, run_id, id, at, frames, data) VALUES ('01a1e6b9-320d-7c37-a6f5-1b5ee450de7b', 10, '01a1e6b9-3254-7770-b5dc-7c9ecbed38f1', '01a1e6b9-336f-7ed9-92b4-12b697e8ad9c', 1794872259439759, 1, '{"type":"tool_call","is_subagent":false,"tool":"write_file","args":{"content":"water the tomatoes","path":"notes.txt"},"result":"Wrote ''notes.txt''; it has 18 bytes.","success":true,"metadata":{"path":"notes.txt","size":18},"call_id":"pyd_ai_f5a4d6e3b0eb434d9888183987fab6f1","run_id":"01a1e6b9-3254-7770-b5dc-7c9ecbed38f1"}');
INSERT INTO public.events (session_id, seq, run_id, id, at, frames, data) VALUES ('01a1e6b9-320d-7c37-a6f5-1b5ee450de7b', 14, '01a1e6b9-3254-7770-b5dc-7c9ecbed38f1', '01a1e6b9-33c9-7eac-87d5-48e72967cf0e', 1794872259529491, 4, '{"type":"stream_delta","delta":"write_file answered: ","run_id":"01a1e6b9-3254-7770-b5dc-7c9ecbed38f1"}
{"type":"stream_delta","delta":"Wrote ''notes.txt''; ","run_id":"01a1e6b9-3254-7770-b5dc-7c9ecbed38f1"}
{"type":"stream_delta","delta":"it has ","run_id":"01a1e6b9-3254-7770-b5dc-7c9ecbed38f1"}
{"type":"stream_delta","delta":"18 bytes.","run_id":"01a1e6b9-3254-7770-b5dc-7c9ecbed38f1"}');
INSERT INTO public.events (session_id, seq, run_id, id, at, frames, data) VALUES ('01a1e6b9-320d-7c37-a6f5-1b5ee450de7b', 15, '01a1e6b9-3254-7770-b5dc-7c9ecbed38f1', '01a1e6b9-3254-7770-b5dc-7c9ecbed38f1:end:1', 1794872259533685, 1, '{"type":"stream_end","content":"write_file answered: Wrote ''notes.txt''; it has 18 bytes.","context_tokens":176,"max_context_tokens":128000,"elapsed_seconds":0.34,"tool_call_count":1,"token_count":21,"message_index":3,"run_id":"01a1e6b9-3254-7770-b5dc-7c9ecbed38f1"}');
INSERT INTO public.events (session_id, seq, run_id, id, at, frames, data) VALUES ('01a1e6b9-320d-7c37-a6f5-1b5ee450de7b', 16, '01a1e6b9-33dc-7c6a-b0a1-612b32f5d9bf', '01a1e6b9-33e3-7b40-ae1e-efccd7ee8ec7', 1794872259555430, 1, '{"type":"stream_start","run_id":"01a1e6b9-33dc-7c6a-b0a1-612b32f5d9bf"}');
INSERT INTO public.events (session_id, seq, run_id, id, at, frames, data) VALUES ('01a1e6b9-320d-7c37-a6f5-1b5ee450de7b', 21, '01a1e6b9-33dc-7c6a-b0a1-612b32f5d9bf', '01a1e6b9-344a-7270-a5be-cab92297694d', 1794872259658629, 5, '{"type":"thinking_delta","delta":"This is ","run_id":"01a1e6b9-33dc-7c6a-b0a1-612b32f5d9bf"}
{"type":"thinking_delta","delta":"the demo ","run_id":"01a1e6b9-33dc-7c6a-b0a1-612b32f5d9bf"}
{"type":"thinking_delta","delta":"model. I ","run_id":"01a1e6b9-33dc-7c6a-b0a1-612b32f5d9bf"}
{"type":"thinking_delta","delta":"know this ","run_id":"01a1e6b9-33dc-7c6a-b0a1-612b32f5d9bf"}
{"type":"thinking_delta","delta":"sentence: it ","run_id":"01a1e6b9-33dc-7c6a-b0a1-612b32f5d9bf"}');
INSERT INTO public.events (session_id, seq, run_id, id, at, frames, data) VALUES ('01a1e6b9-320d-7c37-a6f5-1b5ee450de7b', 23, '01a1e6b9-33dc-7c6a-b0a1-612b32f5d9bf', '01a1e6b9-3477-74d8-b086-135f7d19851e', 1794872259703546, 2, '{"type":"thinking_delta","delta":"means db_insert.","run_id":"01a1e6b9-33dc-7c6a-b0a1-612b32f5d9bf"}
{"type":"thinking_end","run_id":"01a1e6b9-33dc-7c6a-b0a1-612b32f5d9bf"}');
INSERT INTO public.events (session_id, seq, run_id, id, at, frames, data) VALUES ('01a1e6b9-320d-7c37-a6f5-1b5ee450de7b', 24, '01a1e6b9-33dc-7c6a-b0a1-612b32f5d9bf', '01a1e6b9-34b4-7140-8702-44f7709b7a2d', 1794872259764772, 1, '{"type":"tool_started","is_subagent":false,"tool":"db_create_table","args":{"name":"memories","purpose":"What my user told me to remember.","columns":[{"name":"note","type":"text","required":true}]},"call_id":"pyd_ai_a0fc12df209b4d359b81e8bdb24a1ff3","run_id":"01a1e6b9-33dc-7c6a-b0a1-612b32f5d9bf"}');
INSERT INTO public.events (session_id, seq, run_id, id, at, frames, data) VALUES ('01a1e6b9-320d-7c37-a6f5-1b5ee450de7b', 25, '01a1e6b9-33dc-7c6a-b0a1-612b32f5d9bf', '01a1e6b9-34c7-74de-a1b9-91ea20f65324', 1794872259783768, 1, '{"type":"tool_call","is_subagent":false,"tool":"db_create_table","args":{"name":"memories","purpose":"What my user told me to remember.","columns":[{"name":"note","type":"text","required":true}]},"result":"{\"ok\":true,\"result\":{\"table\":\"memories\",\"columns\":[\"id\",\"note\",\"_created_at\",\"_updated_at\",\"_deleted_at\"]}}","success":true,"metadata":{},"call_id":"pyd_ai_a0fc12df209b4d359b81e8bdb24a1ff3","run_id":"01a1e6b9-33dc-7c6a-b0a1-612b32f5d9bf"}');
INSERT INTO public.events (session_id, seq, run_id, id, at, frames, data) VALUES ('01a1e6b9-320d-7c37-a6f5-1b5ee450de7b', 29, '01a1e6b9-33dc-7c6a-b0a1-612b32f5d9bf', '01a1e6b9-351c-7093-b0b4-945b1cda556c', 1794872259868591, 4, '{"type":"thinking_delta","delta":"This is ","run_id":"01a1e6b9-33dc-7c6a-b0a1-612b32f5d9bf"}
{"type":"thinking_delta","delta":"the demo ","run_id":"01a1e6b9-33dc-7c6a-b0a1-612b32f5d9bf"}
{"type":"thinking_delta","delta":"model. The ","run_id":"01a1e6b9-33dc-7c6a-b0a1-612b32f5d9bf"}
{"type":"thinking_delta","delta":"next step ","run_id":"01a1e6b9-33dc-7c6a-b0a1-612b32f5d9bf"}');
INSERT INTO public.events (session_id, seq, run_id, id, at, frames, data) VALUES ('01a1e6b9-320d-7c37-a6f5-1b5ee450de7b', 31, '01a1e6b9-33dc-7c6a-b0a1-612b32f5d9bf', '01a1e6b9-3542-7df3-b518-88402d70e13e', 1794872259907002, 2, '{"type":"thinking_delta","delta":"is db_insert.","run_id":"01a1e6b9-33dc-7c6a-b0a1-612b32f5d9bf"}
{"type":"thinking_end","run_id":"01a1e6b9-33dc-7c6a-b0a1-612b32f5d9bf"}');
INSERT INTO public.events (session_id, seq, run_id, id, at, frames, data) VALUES ('01a1e6b9-320d-7c37-a6f5-1b5ee450de7b', 33, '01a1e6b9-33dc-7c6a-b0a1-612b32f5d9bf', '01a1e6b9-3549-7c41-a68d-0d6add1fab8f', 1794872259913610, 2, '{"type":"tool_started","is_subagent":false,"tool":"db_insert","args":{"table":"memories","rows":[{"note":"the plumber comes on Friday"}]},"call_id":"pyd_ai_40bb80bc16db4f498cf5efa82a9d6251","run_id":"01a1e6b9-33dc-7c6a-b0a1-612b32f5d9bf"}
{"type":"tool_call","is_subagent":false,"tool":"db_insert","args":{"table":"memories","rows":[{"note":"the plumber comes on Friday"}]},"result":"{\"ok\":true,\"result\":{\"table\":\"memories\",\"inserted\":1,\"row_ids\":[1]}}","success":true,"metadata":{},"call_id":"pyd_ai_40bb80bc16db4f498cf5efa82a9d6251","run_id":"01a1e6b9-33dc-7c6a-b0a1-612b32f5d9bf"}');
INSERT INTO public.events (session_id, seq, run_id, id, at, frames, data) VALUES ('01a1e6b9-320d-7c37-a6f5-1b5ee450de7b', 35, '01a1e6b9-33dc-7c6a-b0a1-612b32f5d9bf', '01a1e6b9-357a-7040-a96c-23e3fd79ca1f', 1794872259962536, 2, '{"type":"stream_delta","delta":"I have ","run_id":"01a1e6b9-33dc-7c6a-b0a1-612b32f5d9bf"}
{"type":"stream_delta","delta":"noted that.","run_id":"01a1e6b9-33dc-7c6a-b0a1-612b32f5d9bf"}');
INSERT INTO public.events (session_id, seq, run_id, id, at, frames, data) VALUES ('01a1e6b9-320d-7c37-a6f5-1b5ee450de7b', 36, '01a1e6b9-33dc-7c6a-b0a1-612b32f5d9bf', '01a1e6b9-33dc-7c6a-b0a1-612b32f5d9bf:end:1', 1794872259967187, 1, '{"type":"stream_end","content":"I have noted that.","context_tokens":269,"max_context_tokens":128000,"elapsed_seconds":0.404,"tool_call_count":2,"token_count":28,"message_index":9,"run_id":"01a1e6b9-33dc-7c6a-b0a1-612b32f5d9bf"}');
INSERT INTO public.events (session_id, seq, run_id, id, at, frames, data) VALUES ('01a1e6b9-320d-7c37-a6f5-1b5ee450de7b', 37, '01a1e6b9-3587-73d4-bd06-be3b225f8f16', '01a1e6b9-358d-7f15-aaae-6b672aba288a', 1794872259981933, 1, '{"type":"stream_start","run_id":"01a1e6b9-3587-73d4-bd06-be3b225f8f16"}');
INSERT INTO public.events (session_id, seq, run_id, id, at, frames, data) VALUES ('01a1e6b9-320d-7c37-a6f5-1b5ee450de7b', 50, '01a1e6b9-365e-7e3a-962e-368ed697f80f', '01a1e6b9-3662-7e2f-a3f2-27281ddc8e40', 1794872260194846, 1, '{"type":"stream_start","run_id":"01a1e6b9-365e-7e3a-962e-368ed697f80f"}');
INSERT INTO public.events (session_id, seq, run_id, id, at, frames, data) VALUES ('01a1e6b9-320d-7c37-a6f5-1b5ee450de7b', 71, '01a1e6b9-365e-7e3a-962e-368ed697f80f', '01a1e6b9-365e-7e3a-962e-368ed697f80f:end:1', 1794872260570072, 1, '{"type":"stream_end","content":"This is what I remember:\n- the key is under the pot, 2026-11-16T23:37:40.131335+00:00\n- the plumber comes on Friday, 2026-11-16T23:37:39.911829+00:00","context_tokens":415,"max_context_tokens":128000,"elapsed_seconds":0.37,"tool_call_count":1,"token_count":33,"message_index":17,"run_id":"01a1e6b9-365e-7e3a-962e-368ed697f80f"}');
INSERT INTO public.events (session_id, seq, run_id, id, at, frames, data) VALUES ('01a1e6b9-3a01-7218-8b03-b7ff4e2b43d7', 6, '01a1e6b9-3a0f-7206-bfb1-c557d3fa32e7', '01a1e6b9-3a7e-72fb-92e2-7888fcc687b5', 1794872261246339, 5, '{"type":"thinking_delta","delta":"This is ","run_id":"01a1e6b9-3a0f-7206-bfb1-c557d3fa32e7"}
{"type":"thinking_delta","delta":"the demo ","run_id":"01a1e6b9-3a0f-7206-bfb1-c557d3fa32e7"}
{"type":"thinking_delta","delta":"model. I ","run_id":"01a1e6b9-3a0f-7206-bfb1-c557d3fa32e7"}
{"type":"thinking_delta","delta":"know this ","run_id":"01a1e6b9-3a0f-7206-bfb1-c557d3fa32e7"}
{"type":"thinking_delta","delta":"sentence: it ","run_id":"01a1e6b9-3a0f-7206-bfb1-c557d3fa32e7"}');
INSERT INTO public.events (session_id, seq, run_id, id, at, frames, data) VALUES ('01a1e6b9-3a01-7218-8b03-b7ff4e2b43d7', 8, '01a1e6b9-3a0f-7206-bfb1-c557d3fa32e7', '01a1e6b9-3aa7-7ebe-be55-1621195ccbe0', 1794872261287879, 2, '{"type":"thinking_delta","delta":"means schedule_recall.","run_id":"01a1e6b9-3a0f-7206-bfb1-c557d3fa32e7"}
{"type":"thinking_end","run_id":"01a1e6b9-3a0f-7206-bfb1-c557d3fa32e7"}');
INSERT INTO public.events (session_id, seq, run_id, id, at, frames, data) VALUES ('01a1e6b9-3a01-7218-8b03-b7ff4e2b43d7', 11, '01a1e6b9-3a0f-7206-bfb1-c557d3fa32e7', '01a1e6b9-3ab6-74cf-81a8-008f39ff48be', 1794872261302652, 3, '{"type":"tool_started","is_subagent":false,"tool":"schedule_recall","args":{"call_type":"recurring","when":"in 10 minutes","interval_seconds":600,"internal_comment":"Demo: check notes.txt","additional_context_message":"Read notes.txt with read_file and say what it contains."},"call_id":"pyd_ai_93fa5573beb94c9b8efc41cb99f1b3c6","run_id":"01a1e6b9-3a0f-7206-bfb1-c557d3fa32e7"}
{"type":"tool_call","is_subagent":false,"tool":"schedule_recall","args":{"call_type":"recurring","when":"in 10 minutes","interval_seconds":600,"internal_comment":"Demo: check notes.txt","additional_context_message":"Read notes.txt with read_file and say what it contains."},"result":"Booked: you will wake at 2026-11-16 23:47:41+00:00 Etc/UTC (in 10 min), then every 600 s. Recall id: 01a1e6b9-3aad-7a5f-806c-9bc448b0536c.","success":true,"metadata":{"recall_id":"01a1e6b9-3aad-7a5f-806c-9bc448b0536c","trigger_at":"2026-11-16T23:47:41.293298+00:00"},"call_id":"pyd_ai_93fa5573beb94c9b8efc41cb99f1b3c6","run_id":"01a1e6b9-3a0f-7206-bfb1-c557d3fa32e7"}
{"type":"recall_update","session_id":"01a1e6b9-3a01-7218-8b03-b7ff4e2b43d7","recall_id":"01a1e6b9-3aad-7a5f-806c-9bc448b0536c","call_type":"recurring","trigger_at":"2026-11-16T23:47:41.293298Z","status":"pending","action":"scheduled","run_id":"01a1e6b9-3a0f-7206-bfb1-c557d3fa32e7"}');
INSERT INTO public.events (session_id, seq, run_id, id, at, frames, data) VALUES ('01a1e6b9-3a01-7218-8b03-b7ff4e2b43d7', 14, '01a1e6b9-3a0f-7206-bfb1-c557d3fa32e7', '01a1e6b9-3ae5-75d4-aee5-5e5fdb99e8c5', 1794872261349488, 3, '{"type":"stream_delta","delta":"schedule_recall answered: ","run_id":"01a1e6b9-3a0f-7206-bfb1-c557d3fa32e7"}
{"type":"stream_delta","delta":"Booked: you ","run_id":"01a1e6b9-3a0f-7206-bfb1-c557d3fa32e7"}
{"type":"stream_delta","delta":"will ","run_id":"01a1e6b9-3a0f-7206-bfb1-c557d3fa32e7"}');
INSERT INTO public.events (session_id, seq, run_id, id, at, frames, data) VALUES ('01a1e6b9-3a01-7218-8b03-b7ff4e2b43d7', 19, '01a1e6b9-3a0f-7206-bfb1-c557d3fa32e7', '01a1e6b9-3b4d-7a63-8357-2a2b5035fbde', 1794872261453133, 5, '{"type":"stream_delta","delta":"wake at ","run_id":"01a1e6b9-3a0f-7206-bfb1-c557d3fa32e7"}
{"type":"stream_delta","delta":"2026-11-16 23:47:41+00:00 ","run_id":"01a1e6b9-3a0f-7206-bfb1-c557d3fa32e7"}
{"type":"stream_delta","delta":"Etc/UTC (in ","run_id":"01a1e6b9-3a0f-7206-bfb1-c557d3fa32e7"}
{"type":"stream_delta","delta":"10 min), ","run_id":"01a1e6b9-3a0f-7206-bfb1-c557d3fa32e7"}
{"type":"stream_delta","delta":"then ","run_id":"01a1e6b9-3a0f-7206-bfb1-c557d3fa32e7"}');
INSERT INTO public.events (session_id, seq, run_id, id, at, frames, data) VALUES ('01a1e6b9-3a01-7218-8b03-b7ff4e2b43d7', 22, '01a1e6b9-3a0f-7206-bfb1-c557d3fa32e7', '01a1e6b9-3b8f-7015-876c-405d92802490', 1794872261519149, 3, '{"type":"stream_delta","delta":"every 600 ","run_id":"01a1e6b9-3a0f-7206-bfb1-c557d3fa32e7"}
{"type":"stream_delta","delta":"s. Recall ","run_id":"01a1e6b9-3a0f-7206-bfb1-c557d3fa32e7"}
{"type":"stream_delta","delta":"id: 01a1e6b9-3aad-7a5f-806c-9bc448b0536c.","run_id":"01a1e6b9-3a0f-7206-bfb1-c557d3fa32e7"}');
INSERT INTO public.events (session_id, seq, run_id, id, at, frames, data) VALUES ('01a1e6b9-3a01-7218-8b03-b7ff4e2b43d7', 23, '01a1e6b9-3a0f-7206-bfb1-c557d3fa32e7', '01a1e6b9-3a0f-7206-bfb1-c557d3fa32e7:end:1', 1794872261522716, 1, '{"type":"stream_end","content":"schedule_recall answered: Booked: you will wake at 2026-11-16 23:47:41+00:00 Etc/UTC (in 10 min), then every 600 s. Recall id: 01a1e6b9-3aad-7a5f-806c-9bc448b0536c.","context_tokens":230,"max_context_tokens":128000,"elapsed_seconds":0.375,"tool_call_count":1,"token_count":33,"message_index":3,"run_id":"01a1e6b9-3a0f-7206-bfb1-c557d3fa32e7"}');
INSERT INTO public.events (session_id, seq, run_id, id, at, frames, data) VALUES ('01a1e6b9-320d-7c37-a6f5-1b5ee450de7b', 42, '01a1e6b9-3587-73d4-bd06-be3b225f8f16', '01a1e6b9-35f6-7f81-9b17-4c4bee8b1472', 1794872260086219, 5, '{"type":"thinking_delta","delta":"This is ","run_id":"01a1e6b9-3587-73d4-bd06-be3b225f8f16"}
{"type":"thinking_delta","delta":"the demo ","run_id":"01a1e6b9-3587-73d4-bd06-be3b225f8f16"}
{"type":"thinking_delta","delta":"model. I ","run_id":"01a1e6b9-3587-73d4-bd06-be3b225f8f16"}
{"type":"thinking_delta","delta":"know this ","run_id":"01a1e6b9-3587-73d4-bd06-be3b225f8f16"}
{"type":"thinking_delta","delta":"sentence: it ","run_id":"01a1e6b9-3587-73d4-bd06-be3b225f8f16"}');
INSERT INTO public.events (session_id, seq, run_id, id, at, frames, data) VALUES ('01a1e6b9-320d-7c37-a6f5-1b5ee450de7b', 44, '01a1e6b9-3587-73d4-bd06-be3b225f8f16', '01a1e6b9-361f-7400-bbbf-2ada16b74248', 1794872260127746, 2, '{"type":"thinking_delta","delta":"means db_insert.","run_id":"01a1e6b9-3587-73d4-bd06-be3b225f8f16"}
{"type":"thinking_end","run_id":"01a1e6b9-3587-73d4-bd06-be3b225f8f16"}');
INSERT INTO public.events (session_id, seq, run_id, id, at, frames, data) VALUES ('01a1e6b9-320d-7c37-a6f5-1b5ee450de7b', 46, '01a1e6b9-3587-73d4-bd06-be3b225f8f16', '01a1e6b9-3624-7807-9e02-94c89e808574', 1794872260132931, 2, '{"type":"tool_started","is_subagent":false,"tool":"db_insert","args":{"table":"memories","rows":[{"note":"the key is under the pot"}]},"call_id":"pyd_ai_a7ff78e5201347eb922d58f5867459a9","run_id":"01a1e6b9-3587-73d4-bd06-be3b225f8f16"}
{"type":"tool_call","is_subagent":false,"tool":"db_insert","args":{"table":"memories","rows":[{"note":"the key is under the pot"}]},"result":"{\"ok\":true,\"result\":{\"table\":\"memories\",\"inserted\":1,\"row_ids\":[2]}}","success":true,"metadata":{},"call_id":"pyd_ai_a7ff78e5201347eb922d58f5867459a9","run_id":"01a1e6b9-3587-73d4-bd06-be3b225f8f16"}');
INSERT INTO public.events (session_id, seq, run_id, id, at, frames, data) VALUES ('01a1e6b9-320d-7c37-a6f5-1b5ee450de7b', 48, '01a1e6b9-3587-73d4-bd06-be3b225f8f16', '01a1e6b9-3653-7759-812c-334f758bd540', 1794872260179816, 2, '{"type":"stream_delta","delta":"I have ","run_id":"01a1e6b9-3587-73d4-bd06-be3b225f8f16"}
{"type":"stream_delta","delta":"noted that.","run_id":"01a1e6b9-3587-73d4-bd06-be3b225f8f16"}');
INSERT INTO public.events (session_id, seq, run_id, id, at, frames, data) VALUES ('01a1e6b9-320d-7c37-a6f5-1b5ee450de7b', 49, '01a1e6b9-3587-73d4-bd06-be3b225f8f16', '01a1e6b9-3587-73d4-bd06-be3b225f8f16:end:1', 1794872260183493, 1, '{"type":"stream_end","content":"I have noted that.","context_tokens":316,"max_context_tokens":128000,"elapsed_seconds":0.195,"tool_call_count":1,"token_count":17,"message_index":13,"run_id":"01a1e6b9-3587-73d4-bd06-be3b225f8f16"}');
INSERT INTO public.events (session_id, seq, run_id, id, at, frames, data) VALUES ('01a1e6b9-320d-7c37-a6f5-1b5ee450de7b', 77, '01a1e6b9-37e2-754c-bf5a-55e6a198fb35', '01a1e6b9-384f-78cb-a902-059a4b75cdfb', 1794872260687246, 5, '{"type":"thinking_delta","delta":"This is ","run_id":"01a1e6b9-37e2-754c-bf5a-55e6a198fb35"}
{"type":"thinking_delta","delta":"the demo ","run_id":"01a1e6b9-37e2-754c-bf5a-55e6a198fb35"}
{"type":"thinking_delta","delta":"model. I ","run_id":"01a1e6b9-37e2-754c-bf5a-55e6a198fb35"}
{"type":"thinking_delta","delta":"know this ","run_id":"01a1e6b9-37e2-754c-bf5a-55e6a198fb35"}
{"type":"thinking_delta","delta":"sentence: it ","run_id":"01a1e6b9-37e2-754c-bf5a-55e6a198fb35"}');
INSERT INTO public.events (session_id, seq, run_id, id, at, frames, data) VALUES ('01a1e6b9-320d-7c37-a6f5-1b5ee450de7b', 79, '01a1e6b9-37e2-754c-bf5a-55e6a198fb35', '01a1e6b9-3877-7052-bd61-b3811f2fd5b4', 1794872260728012, 2, '{"type":"thinking_delta","delta":"means db_define_view.","run_id":"01a1e6b9-37e2-754c-bf5a-55e6a198fb35"}
{"type":"thinking_end","run_id":"01a1e6b9-37e2-754c-bf5a-55e6a198fb35"}');
INSERT INTO public.events (session_id, seq, run_id, id, at, frames, data) VALUES ('01a1e6b9-320d-7c37-a6f5-1b5ee450de7b', 81, '01a1e6b9-37e2-754c-bf5a-55e6a198fb35', '01a1e6b9-387e-7983-8246-fa35f5e2e678', 1794872260734468, 2, '{"type":"tool_started","is_subagent":false,"tool":"db_define_view","args":{"name":"memories_by_day","sql":"SELECT date(_created_at) AS day, count(*) AS entries FROM \"memories\" GROUP BY day ORDER BY day","description":"How many memories were added each day.","render":"bar","pinned":true},"call_id":"pyd_ai_25a87fac80e04f98b29bf1425d24c2b8","run_id":"01a1e6b9-37e2-754c-bf5a-55e6a198fb35"}
{"type":"tool_call","is_subagent":false,"tool":"db_define_view","args":{"name":"memories_by_day","sql":"SELECT date(_created_at) AS day, count(*) AS entries FROM \"memories\" GROUP BY day ORDER BY day","description":"How many memories were added each day.","render":"bar","pinned":true},"result":"{\"ok\":true,\"result\":{\"view\":\"memories_by_day\",\"outcome\":\"created\",\"pinned\":true}}","success":true,"metadata":{},"call_id":"pyd_ai_25a87fac80e04f98b29bf1425d24c2b8","run_id":"01a1e6b9-37e2-754c-bf5a-55e6a198fb35"}');
INSERT INTO public.events (session_id, seq, run_id, id, at, frames, data) VALUES ('01a1e6b9-320d-7c37-a6f5-1b5ee450de7b', 84, '01a1e6b9-37e2-754c-bf5a-55e6a198fb35', '01a1e6b9-38b7-7d14-af5d-677c707e205e', 1794872260791322, 3, '{"type":"thinking_delta","delta":"This is ","run_id":"01a1e6b9-37e2-754c-bf5a-55e6a198fb35"}
{"type":"thinking_delta","delta":"the demo ","run_id":"01a1e6b9-37e2-754c-bf5a-55e6a198fb35"}
{"type":"thinking_delta","delta":"model. ","run_id":"01a1e6b9-37e2-754c-bf5a-55e6a198fb35"}');
INSERT INTO public.events (session_id, seq, run_id, id, at, frames, data) VALUES ('01a1e6b9-320d-7c37-a6f5-1b5ee450de7b', 88, '01a1e6b9-37e2-754c-bf5a-55e6a198fb35', '01a1e6b9-38fb-7efb-8ac3-896c57298e36', 1794872260859249, 4, '{"type":"thinking_delta","delta":"The next ","run_id":"01a1e6b9-37e2-754c-bf5a-55e6a198fb35"}
{"type":"thinking_delta","delta":"step is ","run_id":"01a1e6b9-37e2-754c-bf5a-55e6a198fb35"}
{"type":"thinking_delta","delta":"db_run_view.","run_id":"01a1e6b9-37e2-754c-bf5a-55e6a198fb35"}
{"type":"thinking_end","run_id":"01a1e6b9-37e2-754c-bf5a-55e6a198fb35"}');
INSERT INTO public.events (session_id, seq, run_id, id, at, frames, data) VALUES ('01a1e6b9-320d-7c37-a6f5-1b5ee450de7b', 90, '01a1e6b9-37e2-754c-bf5a-55e6a198fb35', '01a1e6b9-38ff-7c90-9342-541a68faa6f7', 1794872260863500, 2, '{"type":"tool_started","is_subagent":false,"tool":"db_run_view","args":{"name":"memories_by_day"},"call_id":"pyd_ai_0abc57cc6151442ab7f2079494d31805","run_id":"01a1e6b9-37e2-754c-bf5a-55e6a198fb35"}
{"type":"tool_call","is_subagent":false,"tool":"db_run_view","args":{"name":"memories_by_day"},"result":"{\"ok\":true,\"result\":{\"view\":\"memories_by_day\",\"render\":\"bar\",\"changed_at\":\"2026-11-16T23:37:40.732013+00:00\",\"columns\":[\"day\",\"entries\"],\"rows\":[[\"2026-11-16\",2]],\"row_count\":1,\"truncated\":false}}","success":true,"metadata":{},"call_id":"pyd_ai_0abc57cc6151442ab7f2079494d31805","run_id":"01a1e6b9-37e2-754c-bf5a-55e6a198fb35"}');
INSERT INTO public.events (session_id, seq, run_id, id, at, frames, data) VALUES ('01a1e6b9-320d-7c37-a6f5-1b5ee450de7b', 92, '01a1e6b9-37e2-754c-bf5a-55e6a198fb35', '01a1e6b9-3929-75b2-9412-3924bcf70a6c', 1794872260905464, 2, '{"type":"stream_delta","delta":"The view ","run_id":"01a1e6b9-37e2-754c-bf5a-55e6a198fb35"}
{"type":"stream_delta","delta":"memories_by_day shows ","run_id":"01a1e6b9-37e2-754c-bf5a-55e6a198fb35"}');
INSERT INTO public.events (session_id, seq, run_id, id, at, frames, data) VALUES ('01a1e6b9-320d-7c37-a6f5-1b5ee450de7b', 97, '01a1e6b9-37e2-754c-bf5a-55e6a198fb35', '01a1e6b9-3990-7b8f-8c97-db072b81caf5', 1794872261009006, 5, '{"type":"stream_delta","delta":"day, entries. ","run_id":"01a1e6b9-37e2-754c-bf5a-55e6a198fb35"}
{"type":"stream_delta","delta":"It is ","run_id":"01a1e6b9-37e2-754c-bf5a-55e6a198fb35"}
{"type":"stream_delta","delta":"pinned to ","run_id":"01a1e6b9-37e2-754c-bf5a-55e6a198fb35"}
{"type":"stream_delta","delta":"the tab ","run_id":"01a1e6b9-37e2-754c-bf5a-55e6a198fb35"}
{"type":"stream_delta","delta":"Home of ","run_id":"01a1e6b9-37e2-754c-bf5a-55e6a198fb35"}');
INSERT INTO public.events (session_id, seq, run_id, id, at, frames, data) VALUES ('01a1e6b9-320d-7c37-a6f5-1b5ee450de7b', 101, '01a1e6b9-37e2-754c-bf5a-55e6a198fb35', '01a1e6b9-39ec-74aa-bda2-fc6f8531b212', 1794872261100717, 4, '{"type":"stream_delta","delta":"this agent, ","run_id":"01a1e6b9-37e2-754c-bf5a-55e6a198fb35"}
{"type":"stream_delta","delta":"and drawn ","run_id":"01a1e6b9-37e2-754c-bf5a-55e6a198fb35"}
{"type":"stream_delta","delta":"there.\n- ","run_id":"01a1e6b9-37e2-754c-bf5a-55e6a198fb35"}
{"type":"stream_delta","delta":"2026-11-16, 2","run_id":"01a1e6b9-37e2-754c-bf5a-55e6a198fb35"}');
INSERT INTO public.events (session_id, seq, run_id, id, at, frames, data) VALUES ('01a1e6b9-320d-7c37-a6f5-1b5ee450de7b', 55, '01a1e6b9-365e-7e3a-962e-368ed697f80f', '01a1e6b9-36ca-7dc3-b1e0-d2919a6030cf', 1794872260298746, 5, '{"type":"thinking_delta","delta":"This is ","run_id":"01a1e6b9-365e-7e3a-962e-368ed697f80f"}
{"type":"thinking_delta","delta":"the demo ","run_id":"01a1e6b9-365e-7e3a-962e-368ed697f80f"}
{"type":"thinking_delta","delta":"model. I ","run_id":"01a1e6b9-365e-7e3a-962e-368ed697f80f"}
{"type":"thinking_delta","delta":"know this ","run_id":"01a1e6b9-365e-7e3a-962e-368ed697f80f"}
{"type":"thinking_delta","delta":"sentence: it ","run_id":"01a1e6b9-365e-7e3a-962e-368ed697f80f"}');
INSERT INTO public.events (session_id, seq, run_id, id, at, frames, data) VALUES ('01a1e6b9-320d-7c37-a6f5-1b5ee450de7b', 57, '01a1e6b9-365e-7e3a-962e-368ed697f80f', '01a1e6b9-36f3-71f2-80a1-fc0889848798', 1794872260339450, 2, '{"type":"thinking_delta","delta":"means db_query.","run_id":"01a1e6b9-365e-7e3a-962e-368ed697f80f"}
{"type":"thinking_end","run_id":"01a1e6b9-365e-7e3a-962e-368ed697f80f"}');
INSERT INTO public.events (session_id, seq, run_id, id, at, frames, data) VALUES ('01a1e6b9-320d-7c37-a6f5-1b5ee450de7b', 59, '01a1e6b9-365e-7e3a-962e-368ed697f80f', '01a1e6b9-36f8-7d04-9174-aa9ad5d1bef0', 1794872260344838, 2, '{"type":"tool_started","is_subagent":false,"tool":"db_query","args":{"sql":"SELECT note, _created_at FROM memories ORDER BY id DESC LIMIT 20"},"call_id":"pyd_ai_c6acd168b53d497f9379eef4e856eb36","run_id":"01a1e6b9-365e-7e3a-962e-368ed697f80f"}
{"type":"tool_call","is_subagent":false,"tool":"db_query","args":{"sql":"SELECT note, _created_at FROM memories ORDER BY id DESC LIMIT 20"},"result":"{\"ok\":true,\"result\":{\"columns\":[\"note\",\"_created_at\"],\"rows\":[[\"the key is under the pot\",\"2026-11-16T23:37:40.131335+00:00\"],[\"the plumber comes on Friday\",\"2026-11-16T23:37:39.911829+00:00\"]],\"row_count\":2,\"truncated\":false}}","success":true,"metadata":{},"call_id":"pyd_ai_c6acd168b53d497f9379eef4e856eb36","run_id":"01a1e6b9-365e-7e3a-962e-368ed697f80f"}');
INSERT INTO public.events (session_id, seq, run_id, id, at, frames, data) VALUES ('01a1e6b9-320d-7c37-a6f5-1b5ee450de7b', 62, '01a1e6b9-365e-7e3a-962e-368ed697f80f', '01a1e6b9-3732-74e1-b80b-0c5abec7d121', 1794872260402091, 3, '{"type":"stream_delta","delta":"This is ","run_id":"01a1e6b9-365e-7e3a-962e-368ed697f80f"}
{"type":"stream_delta","delta":"what I ","run_id":"01a1e6b9-365e-7e3a-962e-368ed697f80f"}
{"type":"stream_delta","delta":"remember:\n","run_id":"01a1e6b9-365e-7e3a-962e-368ed697f80f"}');
INSERT INTO public.events (session_id, seq, run_id, id, at, frames, data) VALUES ('01a1e6b9-320d-7c37-a6f5-1b5ee450de7b', 67, '01a1e6b9-365e-7e3a-962e-368ed697f80f', '01a1e6b9-379a-77c9-b74e-7de45170bd6e', 1794872260506151, 5, '{"type":"stream_delta","delta":"- the ","run_id":"01a1e6b9-365e-7e3a-962e-368ed697f80f"}
{"type":"stream_delta","delta":"key is ","run_id":"01a1e6b9-365e-7e3a-962e-368ed697f80f"}
{"type":"stream_delta","delta":"under the ","run_id":"01a1e6b9-365e-7e3a-962e-368ed697f80f"}
{"type":"stream_delta","delta":"pot, 2026-11-16T23:37:40.131335+00:00\n","run_id":"01a1e6b9-365e-7e3a-962e-368ed697f80f"}
{"type":"stream_delta","delta":"- the ","run_id":"01a1e6b9-365e-7e3a-962e-368ed697f80f"}');
INSERT INTO public.events (session_id, seq, run_id, id, at, frames, data) VALUES ('01a1e6b9-320d-7c37-a6f5-1b5ee450de7b', 70, '01a1e6b9-365e-7e3a-962e-368ed697f80f', '01a1e6b9-37d6-7019-84f9-fe706baca052', 1794872260566107, 3, '{"type":"stream_delta","delta":"plumber comes ","run_id":"01a1e6b9-365e-7e3a-962e-368ed697f80f"}
{"type":"stream_delta","delta":"on Friday, ","run_id":"01a1e6b9-365e-7e3a-962e-368ed697f80f"}
{"type":"stream_delta","delta":"2026-11-16T23:37:39.911829+00:00","run_id":"01a1e6b9-365e-7e3a-962e-368ed697f80f"}');
INSERT INTO public.events (session_id, seq, run_id, id, at, frames, data) VALUES ('01a1e6b9-320d-7c37-a6f5-1b5ee450de7b', 72, '01a1e6b9-37e2-754c-bf5a-55e6a198fb35', '01a1e6b9-37e7-742c-85d4-3e8baf366ae7', 1794872260583193, 1, '{"type":"stream_start","run_id":"01a1e6b9-37e2-754c-bf5a-55e6a198fb35"}');
INSERT INTO public.events (session_id, seq, run_id, id, at, frames, data) VALUES ('01a1e6b9-3a01-7218-8b03-b7ff4e2b43d7', 1, '01a1e6b9-3a0f-7206-bfb1-c557d3fa32e7', '01a1e6b9-3a15-7dac-b4ef-0daaf065074a', 1794872261141516, 1, '{"type":"stream_start","run_id":"01a1e6b9-3a0f-7206-bfb1-c557d3fa32e7"}');
INSERT INTO public.events (session_id, seq, run_id, id, at, frames, data) VALUES ('01a1e6b9-320d-7c37-a6f5-1b5ee450de7b', 102, '01a1e6b9-37e2-754c-bf5a-55e6a198fb35', '01a1e6b9-37e2-754c-bf5a-55e6a198fb35:end:1', 1794872261104830, 1, '{"type":"stream_end","content":"The view memories_by_day shows day, entries. It is pinned to the tab Home of this agent, and drawn there.\n- 2026-11-16, 2","context_tokens":560,"max_context_tokens":128000,"elapsed_seconds":0.516,"tool_call_count":2,"token_count":46,"message_index":23,"run_id":"01a1e6b9-37e2-754c-bf5a-55e6a198fb35"}');
INSERT INTO public.events (session_id, seq, run_id, id, at, frames, data) VALUES ('01a1e6b9-320d-7c37-a6f5-1b5ee450de7b', 103, NULL, '01a1e6b9-3f23-7417-8c9c-57c6181aff36', 1794872262435677, 1, '{"type":"recall_update","session_id":"01a1e6b9-320d-7c37-a6f5-1b5ee450de7b","recall_id":"01a1e6b9-3f19-77c4-abb9-971771b09517","call_type":"once","trigger_at":"2026-11-18T23:37:42.425462Z","status":"pending","action":"scheduled"}');
INSERT INTO public.messages (id, session_id, "position", run_id, role, content, is_recall, source, wake_id, label, created_at, data) VALUES ('01a1e6b9-3254-7320-b482-8ccac60a5569', '01a1e6b9-320d-7c37-a6f5-1b5ee450de7b', 1, NULL, 'user', 'write water the tomatoes to notes.txt', 0, NULL, NULL, NULL, 1794872259156974, NULL);
INSERT INTO public.messages (id, session_id, "position", run_id, role, content, is_recall, source, wake_id, label, created_at, data) VALUES ('01a1e6b9-3365-7abc-a0a3-4a4a57f6fc33', '01a1e6b9-320d-7c37-a6f5-1b5ee450de7b', 2, '01a1e6b9-3254-7770-b5dc-7c9ecbed38f1', 'assistant', '', 0, NULL, NULL, NULL, 1794872259429668, '{"response":{"parts":[{"content":"This is the demo model. I know this sentence: it means write_file.","id":null,"signature":null,"provider_name":null,"provider_details":null,"part_kind":"thinking"},{"tool_name":"write_file","args":"{\"content\":\"water the tomatoes\",\"path\":\"notes.txt\"}","tool_call_id":"pyd_ai_f5a4d6e3b0eb434d9888183987fab6f1","tool_kind":null,"id":null,"provider_name":null,"provider_details":null,"part_kind":"tool-call"}],"usage":{"input_tokens":143,"cache_write_tokens":0,"cache_write_1h_tokens":0,"cache_read_tokens":0,"output_tokens":13,"output_reasoning_tokens":0,"input_audio_tokens":0,"cache_audio_read_tokens":0,"output_audio_tokens":0,"audio_seconds":0.0,"details":{},"cost":null},"model_name":"demo","model_id":null,"timestamp":"2026-11-16T23:37:39.209762Z","kind":"response","provider_name":"demo","provider_url":null,"canonical_system":null,"provider_details":null,"provider_response_id":null,"finish_reason":"tool_call","run_id":null,"conversation_id":null,"metadata":null,"workspace_ref":null,"history_digest":null,"failed_attempts":null,"state":"complete"},"thinking":"This is the demo model. I know this sentence: it means write_file.","tool_calls":[{"call_id":"pyd_ai_f5a4d6e3b0eb434d9888183987fab6f1","tool":"write_file","args":{"content":"water the tomatoes","path":"notes.txt"}}]}');
INSERT INTO public.messages (id, session_id, "position", run_id, role, content, is_recall, source, wake_id, label, created_at, data) VALUES ('01a1e6b9-336f-7ed9-92b4-12b697e8ad9c', '01a1e6b9-320d-7c37-a6f5-1b5ee450de7b', 3, '01a1e6b9-3254-7770-b5dc-7c9ecbed38f1', 'tool', 'Wrote ''notes.txt''; it has 18 bytes.', 0, NULL, NULL, NULL, 1794872259439759, '{"call_id":"pyd_ai_f5a4d6e3b0eb434d9888183987fab6f1","tool":"write_file","args":{"content":"water the tomatoes","path":"notes.txt"},"success":true,"metadata":{"path":"notes.txt","size":18}}');
INSERT INTO public.messages (id, session_id, "position", run_id, role, content, is_recall, source, wake_id, label, created_at, data) VALUES ('01a1e6b9-33c9-7eac-87d5-48e72967cf0e', '01a1e6b9-320d-7c37-a6f5-1b5ee450de7b', 4, '01a1e6b9-3254-7770-b5dc-7c9ecbed38f1', 'assistant', 'write_file answered: Wrote ''notes.txt''; it has 18 bytes.', 0, NULL, NULL, NULL, 1794872259529491, '{"response":{"parts":[{"content":"write_file answered: Wrote ''notes.txt''; it has 18 bytes.","id":null,"provider_name":null,"provider_details":null,"citations":null,"part_kind":"text"}],"usage":{"input_tokens":168,"cache_write_tokens":0,"cache_write_1h_tokens":0,"cache_read_tokens":0,"output_tokens":8,"output_reasoning_tokens":0,"input_audio_tokens":0,"cache_audio_read_tokens":0,"output_audio_tokens":0,"audio_seconds":0.0,"details":{},"cost":null},"model_name":"demo","model_id":null,"timestamp":"2026-11-16T23:37:39.444394Z","kind":"response","provider_name":"demo","provider_url":null,"canonical_system":null,"provider_details":null,"provider_response_id":null,"finish_reason":"stop","run_id":null,"conversation_id":null,"metadata":null,"workspace_ref":null,"history_digest":null,"failed_attempts":null,"state":"complete"}}');
INSERT INTO public.messages (id, session_id, "position", run_id, role, content, is_recall, source, wake_id, label, created_at, data) VALUES ('01a1e6b9-33dc-7941-bdbb-d0e8f787a473', '01a1e6b9-320d-7c37-a6f5-1b5ee450de7b', 5, NULL, 'user', 'remember that the plumber comes on Friday', 0, NULL, NULL, NULL, 1794872259548711, NULL);
INSERT INTO public.messages (id, session_id, "position", run_id, role, content, is_recall, source, wake_id, label, created_at, data) VALUES ('01a1e6b9-3477-74d8-b086-135f7d19851e', '01a1e6b9-320d-7c37-a6f5-1b5ee450de7b', 6, '01a1e6b9-33dc-7c6a-b0a1-612b32f5d9bf', 'assistant', '', 0, NULL, NULL, NULL, 1794872259703546, '{"response":{"parts":[{"content":"This is the demo model. I know this sentence: it means db_insert.","id":null,"signature":null,"provider_name":null,"provider_details":null,"part_kind":"thinking"},{"tool_name":"db_create_table","args":"{\"name\":\"memories\",\"purpose\":\"What my user told me to remember.\",\"columns\":[{\"name\":\"note\",\"type\":\"text\",\"required\":true}]}","tool_call_id":"pyd_ai_a0fc12df209b4d359b81e8bdb24a1ff3","tool_kind":null,"id":null,"provider_name":null,"provider_details":null,"part_kind":"tool-call"}],"usage":{"input_tokens":193,"cache_write_tokens":0,"cache_write_1h_tokens":0,"cache_read_tokens":0,"output_tokens":13,"output_reasoning_tokens":0,"input_audio_tokens":0,"cache_audio_read_tokens":0,"output_audio_tokens":0,"audio_seconds":0.0,"details":{},"cost":null},"model_name":"demo","model_id":null,"timestamp":"2026-11-16T23:37:39.563509Z","kind":"response","provider_name":"demo","provider_url":null,"canonical_system":null,"provider_details":null,"provider_response_id":null,"finish_reason":"tool_call","run_id":null,"conversation_id":null,"metadata":null,"workspace_ref":null,"history_digest":null,"failed_attempts":null,"state":"complete"},"thinking":"This is the demo model. I know this sentence: it means db_insert.","tool_calls":[{"call_id":"pyd_ai_a0fc12df209b4d359b81e8bdb24a1ff3","tool":"db_create_table","args":{"name":"memories","purpose":"What my user told me to remember.","columns":[{"name":"note","type":"text","required":true}]}}]}');
INSERT INTO public.messages (id, session_id, "position", run_id, role, content, is_recall, source, wake_id, label, created_at, data) VALUES ('01a1e6b9-34c7-74de-a1b9-91ea20f65324', '01a1e6b9-320d-7c37-a6f5-1b5ee450de7b', 7, '01a1e6b9-33dc-7c6a-b0a1-612b32f5d9bf', 'tool', '{"ok":true,"result":{"table":"memories","columns":["id","note","_created_at","_updated_at","_deleted_at"]}}', 0, NULL, NULL, NULL, 1794872259783768, '{"call_id":"pyd_ai_a0fc12df209b4d359b81e8bdb24a1ff3","tool":"db_create_table","args":{"name":"memories","purpose":"What my user told me to remember.","columns":[{"name":"note","type":"text","required":true}]},"success":true,"metadata":{}}');
INSERT INTO public.messages (id, session_id, "position", run_id, role, content, is_recall, source, wake_id, label, created_at, data) VALUES ('01a1e6b9-3542-7df3-b518-88402d70e13e', '01a1e6b9-320d-7c37-a6f5-1b5ee450de7b', 8, '01a1e6b9-33dc-7c6a-b0a1-612b32f5d9bf', 'assistant', '', 0, NULL, NULL, NULL, 1794872259907002, '{"response":{"parts":[{"content":"This is the demo model. The next step is db_insert.","id":null,"signature":null,"provider_name":null,"provider_details":null,"part_kind":"thinking"},{"tool_name":"db_insert","args":"{\"table\":\"memories\",\"rows\":[{\"note\":\"the plumber comes on Friday\"}]}","tool_call_id":"pyd_ai_40bb80bc16db4f498cf5efa82a9d6251","tool_kind":null,"id":null,"provider_name":null,"provider_details":null,"part_kind":"tool-call"}],"usage":{"input_tokens":236,"cache_write_tokens":0,"cache_write_1h_tokens":0,"cache_read_tokens":0,"output_tokens":11,"output_reasoning_tokens":0,"input_audio_tokens":0,"cache_audio_read_tokens":0,"output_audio_tokens":0,"audio_seconds":0.0,"details":{},"cost":null},"model_name":"demo","model_id":null,"timestamp":"2026-11-16T23:37:39.787963Z","kind":"response","provider_name":"demo","provider_url":null,"canonical_system":null,"provider_details":null,"provider_response_id":null,"finish_reason":"tool_call","run_id":null,"conversation_id":null,"metadata":null,"workspace_ref":null,"history_digest":null,"failed_attempts":null,"state":"complete"},"thinking":"This is the demo model. The next step is db_insert.","tool_calls":[{"call_id":"pyd_ai_40bb80bc16db4f498cf5efa82a9d6251","tool":"db_insert","args":{"table":"memories","rows":[{"note":"the plumber comes on Friday"}]}}]}');
INSERT INTO public.messages (id, session_id, "position", run_id, role, content, is_recall, source, wake_id, label, created_at, data) VALUES ('01a1e6b9-3549-7c41-a68d-0d6add1fab8f', '01a1e6b9-320d-7c37-a6f5-1b5ee450de7b', 9, '01a1e6b9-33dc-7c6a-b0a1-612b32f5d9bf', 'tool', '{"ok":true,"result":{"table":"memories","inserted":1,"row_ids":[1]}}', 0, NULL, NULL, NULL, 1794872259913610, '{"call_id":"pyd_ai_40bb80bc16db4f498cf5efa82a9d6251","tool":"db_insert","args":{"table":"memories","rows":[{"note":"the plumber comes on Friday"}]},"success":true,"metadata":{}}');
INSERT INTO public.messages (id, session_id, "position", run_id, role, content, is_recall, source, wake_id, label, created_at, data) VALUES ('01a1e6b9-3587-733c-8f04-aac17aff6919', '01a1e6b9-320d-7c37-a6f5-1b5ee450de7b', 11, NULL, 'user', 'remember that the key is under the pot', 0, NULL, NULL, NULL, 1794872259975990, NULL);
INSERT INTO public.messages (id, session_id, "position", run_id, role, content, is_recall, source, wake_id, label, created_at, data) VALUES ('01a1e6b9-3a0f-76c0-a6c2-cdd7ee64cbb7', '01a1e6b9-3a01-7218-8b03-b7ff4e2b43d7', 1, NULL, 'user', 'every 10 minutes check notes.txt', 0, NULL, NULL, NULL, 1794872261135643, NULL);
INSERT INTO public.messages (id, session_id, "position", run_id, role, content, is_recall, source, wake_id, label, created_at, data) VALUES ('01a1e6b9-357a-7040-a96c-23e3fd79ca1f', '01a1e6b9-320d-7c37-a6f5-1b5ee450de7b', 10, '01a1e6b9-33dc-7c6a-b0a1-612b32f5d9bf', 'assistant', 'I have noted that.', 0, NULL, NULL, NULL, 1794872259962536, '{"response":{"parts":[{"content":"I have noted that.","id":null,"provider_name":null,"provider_details":null,"citations":null,"part_kind":"text"}],"usage":{"input_tokens":265,"cache_write_tokens":0,"cache_write_1h_tokens":0,"cache_read_tokens":0,"output_tokens":4,"output_reasoning_tokens":0,"input_audio_tokens":0,"cache_audio_read_tokens":0,"output_audio_tokens":0,"audio_seconds":0.0,"details":{},"cost":null},"model_name":"demo","model_id":null,"timestamp":"2026-11-16T23:37:39.918335Z","kind":"response","provider_name":"demo","provider_url":null,"canonical_system":null,"provider_details":null,"provider_response_id":null,"finish_reason":"stop","run_id":null,"conversation_id":null,"metadata":null,"workspace_ref":null,"history_digest":null,"failed_attempts":null,"state":"complete"}}');
INSERT INTO public.messages (id, session_id, "position", run_id, role, content, is_recall, source, wake_id, label, created_at, data) VALUES ('01a1e6b9-365e-7d27-a78c-c153c2f6ce67', '01a1e6b9-320d-7c37-a6f5-1b5ee450de7b', 15, NULL, 'user', 'what do you remember', 0, NULL, NULL, NULL, 1794872260190024, NULL);
INSERT INTO public.messages (id, session_id, "position", run_id, role, content, is_recall, source, wake_id, label, created_at, data) VALUES ('01a1e6b9-36f3-71f2-80a1-fc0889848798', '01a1e6b9-320d-7c37-a6f5-1b5ee450de7b', 16, '01a1e6b9-365e-7e3a-962e-368ed697f80f', 'assistant', '', 0, NULL, NULL, NULL, 1794872260339450, '{"response":{"parts":[{"content":"This is the demo model. I know this sentence: it means db_query.","id":null,"signature":null,"provider_name":null,"provider_details":null,"part_kind":"thinking"},{"tool_name":"db_query","args":"{\"sql\":\"SELECT note, _created_at FROM memories ORDER BY id DESC LIMIT 20\"}","tool_call_id":"pyd_ai_c6acd168b53d497f9379eef4e856eb36","tool_kind":null,"id":null,"provider_name":null,"provider_details":null,"part_kind":"tool-call"}],"usage":{"input_tokens":322,"cache_write_tokens":0,"cache_write_1h_tokens":0,"cache_read_tokens":0,"output_tokens":13,"output_reasoning_tokens":0,"input_audio_tokens":0,"cache_audio_read_tokens":0,"output_audio_tokens":0,"audio_seconds":0.0,"details":{},"cost":null},"model_name":"demo","model_id":null,"timestamp":"2026-11-16T23:37:40.200341Z","kind":"response","provider_name":"demo","provider_url":null,"canonical_system":null,"provider_details":null,"provider_response_id":null,"finish_reason":"tool_call","run_id":null,"conversation_id":null,"metadata":null,"workspace_ref":null,"history_digest":null,"failed_attempts":null,"state":"complete"},"thinking":"This is the demo model. I know this sentence: it means db_query.","tool_calls":[{"call_id":"pyd_ai_c6acd168b53d497f9379eef4e856eb36","tool":"db_query","args":{"sql":"SELECT note, _created_at FROM memories ORDER BY id DESC LIMIT 20"}}]}');
INSERT INTO public.messages (id, session_id, "position", run_id, role, content, is_recall, source, wake_id, label, created_at, data) VALUES ('01a1e6b9-36f8-7d04-9174-aa9ad5d1bef0', '01a1e6b9-320d-7c37-a6f5-1b5ee450de7b', 17, '01a1e6b9-365e-7e3a-962e-368ed697f80f', 'tool', '{"ok":true,"result":{"columns":["note","_created_at"],"rows":[["the key is under the pot","2026-11-16T23:37:40.131335+00:00"],["the plumber comes on Friday","2026-11-16T23:37:39.911829+00:00"]],"row_count":2,"truncated":false}}', 0, NULL, NULL, NULL, 1794872260344838, '{"call_id":"pyd_ai_c6acd168b53d497f9379eef4e856eb36","tool":"db_query","args":{"sql":"SELECT note, _created_at FROM memories ORDER BY id DESC LIMIT 20"},"success":true,"metadata":{}}');
INSERT INTO public.messages (id, session_id, "position", run_id, role, content, is_recall, source, wake_id, label, created_at, data) VALUES ('01a1e6b9-37d6-7019-84f9-fe706baca052', '01a1e6b9-320d-7c37-a6f5-1b5ee450de7b', 18, '01a1e6b9-365e-7e3a-962e-368ed697f80f', 'assistant', 'This is what I remember:
- the key is under the pot, 2026-11-16T23:37:40.131335+00:00
- the plumber comes on Friday, 2026-11-16T23:37:39.911829+00:00', 0, NULL, NULL, NULL, 1794872260566107, '{"response":{"parts":[{"content":"This is what I remember:\n- the key is under the pot, 2026-11-16T23:37:40.131335+00:00\n- the plumber comes on Friday, 2026-11-16T23:37:39.911829+00:00","id":null,"provider_name":null,"provider_details":null,"citations":null,"part_kind":"text"}],"usage":{"input_tokens":395,"cache_write_tokens":0,"cache_write_1h_tokens":0,"cache_read_tokens":0,"output_tokens":20,"output_reasoning_tokens":0,"input_audio_tokens":0,"cache_audio_read_tokens":0,"output_audio_tokens":0,"audio_seconds":0.0,"details":{},"cost":null},"model_name":"demo","model_id":null,"timestamp":"2026-11-16T23:37:40.349241Z","kind":"response","provider_name":"demo","provider_url":null,"canonical_system":null,"provider_details":null,"provider_response_id":null,"finish_reason":"stop","run_id":null,"conversation_id":null,"metadata":null,"workspace_ref":null,"history_digest":null,"failed_attempts":null,"state":"complete"}}');
INSERT INTO public.messages (id, session_id, "position", run_id, role, content, is_recall, source, wake_id, label, created_at, data) VALUES ('01a1e6b9-361f-7400-bbbf-2ada16b74248', '01a1e6b9-320d-7c37-a6f5-1b5ee450de7b', 12, '01a1e6b9-3587-73d4-bd06-be3b225f8f16', 'assistant', '', 0, NULL, NULL, NULL, 1794872260127746, '{"response":{"parts":[{"content":"This is the demo model. I know this sentence: it means db_insert.","id":null,"signature":null,"provider_name":null,"provider_details":null,"part_kind":"thinking"},{"tool_name":"db_insert","args":"{\"table\":\"memories\",\"rows\":[{\"note\":\"the key is under the pot\"}]}","tool_call_id":"pyd_ai_a7ff78e5201347eb922d58f5867459a9","tool_kind":null,"id":null,"provider_name":null,"provider_details":null,"part_kind":"tool-call"}],"usage":{"input_tokens":279,"cache_write_tokens":0,"cache_write_1h_tokens":0,"cache_read_tokens":0,"output_tokens":13,"output_reasoning_tokens":0,"input_audio_tokens":0,"cache_audio_read_tokens":0,"output_audio_tokens":0,"audio_seconds":0.0,"details":{},"cost":null},"model_name":"demo","model_id":null,"timestamp":"2026-11-16T23:37:39.988788Z","kind":"response","provider_name":"demo","provider_url":null,"canonical_system":null,"provider_details":null,"provider_response_id":null,"finish_reason":"tool_call","run_id":null,"conversation_id":null,"metadata":null,"workspace_ref":null,"history_digest":null,"failed_attempts":null,"state":"complete"},"thinking":"This is the demo model. I know this sentence: it means db_insert.","tool_calls":[{"call_id":"pyd_ai_a7ff78e5201347eb922d58f5867459a9","tool":"db_insert","args":{"table":"memories","rows":[{"note":"the key is under the pot"}]}}]}');
INSERT INTO public.messages (id, session_id, "position", run_id, role, content, is_recall, source, wake_id, label, created_at, data) VALUES ('01a1e6b9-3624-7807-9e02-94c89e808574', '01a1e6b9-320d-7c37-a6f5-1b5ee450de7b', 13, '01a1e6b9-3587-73d4-bd06-be3b225f8f16', 'tool', '{"ok":true,"result":{"table":"memories","inserted":1,"row_ids":[2]}}', 0, NULL, NULL, NULL, 1794872260132931, '{"call_id":"pyd_ai_a7ff78e5201347eb922d58f5867459a9","tool":"db_insert","args":{"table":"memories","rows":[{"note":"the key is under the pot"}]},"success":true,"metadata":{}}');
INSERT INTO public.messages (id, session_id, "position", run_id, role, content, is_recall, source, wake_id, label, created_at, data) VALUES ('01a1e6b9-3653-7759-812c-334f758bd540', '01a1e6b9-320d-7c37-a6f5-1b5ee450de7b', 14, '01a1e6b9-3587-73d4-bd06-be3b225f8f16', 'assistant', 'I have noted that.', 0, NULL, NULL, NULL, 1794872260179816, '{"response":{"parts":[{"content":"I have noted that.","id":null,"provider_name":null,"provider_details":null,"citations":null,"part_kind":"text"}],"usage":{"input_tokens":312,"cache_write_tokens":0,"cache_write_1h_tokens":0,"cache_read_tokens":0,"output_tokens":4,"output_reasoning_tokens":0,"input_audio_tokens":0,"cache_audio_read_tokens":0,"output_audio_tokens":0,"audio_seconds":0.0,"details":{},"cost":null},"model_name":"demo","model_id":null,"timestamp":"2026-11-16T23:37:40.136583Z","kind":"response","provider_name":"demo","provider_url":null,"canonical_system":null,"provider_details":null,"provider_response_id":null,"finish_reason":"stop","run_id":null,"conversation_id":null,"metadata":null,"workspace_ref":null,"history_digest":null,"failed_attempts":null,"state":"complete"}}');
INSERT INTO public.messages (id, session_id, "position", run_id, role, content, is_recall, source, wake_id, label, created_at, data) VALUES ('01a1e6b9-37e2-71bc-83c6-723238bdebad', '01a1e6b9-320d-7c37-a6f5-1b5ee450de7b', 19, NULL, 'user', 'draw a chart of memories', 0, NULL, NULL, NULL, 1794872260578247, NULL);
INSERT INTO public.messages (id, session_id, "position", run_id, role, content, is_recall, source, wake_id, label, created_at, data) VALUES ('01a1e6b9-3877-7052-bd61-b3811f2fd5b4', '01a1e6b9-320d-7c37-a6f5-1b5ee450de7b', 20, '01a1e6b9-37e2-754c-bf5a-55e6a198fb35', 'assistant', '', 0, NULL, NULL, NULL, 1794872260728012, '{"response":{"parts":[{"content":"This is the demo model. I know this sentence: it means db_define_view.","id":null,"signature":null,"provider_name":null,"provider_details":null,"part_kind":"thinking"},{"tool_name":"db_define_view","args":"{\"name\":\"memories_by_day\",\"sql\":\"SELECT date(_created_at) AS day, count(*) AS entries FROM \\\"memories\\\" GROUP BY day ORDER BY day\",\"description\":\"How many memories were added each day.\",\"render\":\"bar\",\"pinned\":true}","tool_call_id":"pyd_ai_25a87fac80e04f98b29bf1425d24c2b8","tool_kind":null,"id":null,"provider_name":null,"provider_details":null,"part_kind":"tool-call"}],"usage":{"input_tokens":438,"cache_write_tokens":0,"cache_write_1h_tokens":0,"cache_read_tokens":0,"output_tokens":13,"output_reasoning_tokens":0,"input_audio_tokens":0,"cache_audio_read_tokens":0,"output_audio_tokens":0,"audio_seconds":0.0,"details":{},"cost":null},"model_name":"demo","model_id":null,"timestamp":"2026-11-16T23:37:40.588619Z","kind":"response","provider_name":"demo","provider_url":null,"canonical_system":null,"provider_details":null,"provider_response_id":null,"finish_reason":"tool_call","run_id":null,"conversation_id":null,"metadata":null,"workspace_ref":null,"history_digest":null,"failed_attempts":null,"state":"complete"},"thinking":"This is the demo model. I know this sentence: it means db_define_view.","tool_calls":[{"call_id":"pyd_ai_25a87fac80e04f98b29bf1425d24c2b8","tool":"db_define_view","args":{"name":"memories_by_day","sql":"SELECT date(_created_at) AS day, count(*) AS entries FROM \"memories\" GROUP BY day ORDER BY day","description":"How many memories were added each day.","render":"bar","pinned":true}}]}');
INSERT INTO public.messages (id, session_id, "position", run_id, role, content, is_recall, source, wake_id, label, created_at, data) VALUES ('01a1e6b9-387e-7983-8246-fa35f5e2e678', '01a1e6b9-320d-7c37-a6f5-1b5ee450de7b', 21, '01a1e6b9-37e2-754c-bf5a-55e6a198fb35', 'tool', '{"ok":true,"result":{"view":"memories_by_day","outcome":"created","pinned":true}}', 0, NULL, NULL, NULL, 1794872260734468, '{"call_id":"pyd_ai_25a87fac80e04f98b29bf1425d24c2b8","tool":"db_define_view","args":{"name":"memories_by_day","sql":"SELECT date(_created_at) AS day, count(*) AS entries FROM \"memories\" GROUP BY day ORDER BY day","description":"How many memories were added each day.","render":"bar","pinned":true},"success":true,"metadata":{}}');
INSERT INTO public.messages (id, session_id, "position", run_id, role, content, is_recall, source, wake_id, label, created_at, data) VALUES ('01a1e6b9-38fb-7efb-8ac3-896c57298e36', '01a1e6b9-320d-7c37-a6f5-1b5ee450de7b', 22, '01a1e6b9-37e2-754c-bf5a-55e6a198fb35', 'assistant', '', 0, NULL, NULL, NULL, 1794872260859249, '{"response":{"parts":[{"content":"This is the demo model. The next step is db_run_view.","id":null,"signature":null,"provider_name":null,"provider_details":null,"part_kind":"thinking"},{"tool_name":"db_run_view","args":"{\"name\":\"memories_by_day\"}","tool_call_id":"pyd_ai_0abc57cc6151442ab7f2079494d31805","tool_kind":null,"id":null,"provider_name":null,"provider_details":null,"part_kind":"tool-call"}],"usage":{"input_tokens":476,"cache_write_tokens":0,"cache_write_1h_tokens":0,"cache_read_tokens":0,"output_tokens":11,"output_reasoning_tokens":0,"input_audio_tokens":0,"cache_audio_read_tokens":0,"output_audio_tokens":0,"audio_seconds":0.0,"details":{},"cost":null},"model_name":"demo","model_id":null,"timestamp":"2026-11-16T23:37:40.739119Z","kind":"response","provider_name":"demo","provider_url":null,"canonical_system":null,"provider_details":null,"provider_response_id":null,"finish_reason":"tool_call","run_id":null,"conversation_id":null,"metadata":null,"workspace_ref":null,"history_digest":null,"failed_attempts":null,"state":"complete"},"thinking":"This is the demo model. The next step is db_run_view.","tool_calls":[{"call_id":"pyd_ai_0abc57cc6151442ab7f2079494d31805","tool":"db_run_view","args":{"name":"memories_by_day"}}]}');
INSERT INTO public.messages (id, session_id, "position", run_id, role, content, is_recall, source, wake_id, label, created_at, data) VALUES ('01a1e6b9-38ff-7c90-9342-541a68faa6f7', '01a1e6b9-320d-7c37-a6f5-1b5ee450de7b', 23, '01a1e6b9-37e2-754c-bf5a-55e6a198fb35', 'tool', '{"ok":true,"result":{"view":"memories_by_day","render":"bar","changed_at":"2026-11-16T23:37:40.732013+00:00","columns":["day","entries"],"rows":[["2026-11-16",2]],"row_count":1,"truncated":false}}', 0, NULL, NULL, NULL, 1794872260863500, '{"call_id":"pyd_ai_0abc57cc6151442ab7f2079494d31805","tool":"db_run_view","args":{"name":"memories_by_day"},"success":true,"metadata":{}}');
INSERT INTO public.messages (id, session_id, "position", run_id, role, content, is_recall, source, wake_id, label, created_at, data) VALUES ('01a1e6b9-39ec-74aa-bda2-fc6f8531b212', '01a1e6b9-320d-7c37-a6f5-1b5ee450de7b', 24, '01a1e6b9-37e2-754c-bf5a-55e6a198fb35', 'assistant', 'The view memories_by_day shows day, entries. It is pinned to the tab Home of this agent, and drawn there.
- 2026-11-16, 2', 0, NULL, NULL, NULL, 1794872261100717, '{"response":{"parts":[{"content":"The view memories_by_day shows day, entries. It is pinned to the tab Home of this agent, and drawn there.\n- 2026-11-16, 2","id":null,"provider_name":null,"provider_details":null,"citations":null,"part_kind":"text"}],"usage":{"input_tokens":538,"cache_write_tokens":0,"cache_write_1h_tokens":0,"cache_read_tokens":0,"output_tokens":22,"output_reasoning_tokens":0,"input_audio_tokens":0,"cache_audio_read_tokens":0,"output_audio_tokens":0,"audio_seconds":0.0,"details":{},"cost":null},"model_name":"demo","model_id":null,"timestamp":"2026-11-16T23:37:40.866929Z","kind":"response","provider_name":"demo","provider_url":null,"canonical_system":null,"provider_details":null,"provider_response_id":null,"finish_reason":"stop","run_id":null,"conversation_id":null,"metadata":null,"workspace_ref":null,"history_digest":null,"failed_attempts":null,"state":"complete"}}');
INSERT INTO public.messages (id, session_id, "position", run_id, role, content, is_recall, source, wake_id, label, created_at, data) VALUES ('01a1e6b9-3aa7-7ebe-be55-1621195ccbe0', '01a1e6b9-3a01-7218-8b03-b7ff4e2b43d7', 2, '01a1e6b9-3a0f-7206-bfb1-c557d3fa32e7', 'assistant', '', 0, NULL, NULL, NULL, 1794872261287879, '{"response":{"parts":[{"content":"This is the demo model. I know this sentence: it means schedule_recall.","id":null,"signature":null,"provider_name":null,"provider_details":null,"part_kind":"thinking"},{"tool_name":"schedule_recall","args":"{\"call_type\":\"recurring\",\"when\":\"in 10 minutes\",\"interval_seconds\":600,\"internal_comment\":\"Demo: check notes.txt\",\"additional_context_message\":\"Read notes.txt with read_file and say what it contains.\"}","tool_call_id":"pyd_ai_93fa5573beb94c9b8efc41cb99f1b3c6","tool_kind":null,"id":null,"provider_name":null,"provider_details":null,"part_kind":"tool-call"}],"usage":{"input_tokens":157,"cache_write_tokens":0,"cache_write_1h_tokens":0,"cache_read_tokens":0,"output_tokens":13,"output_reasoning_tokens":0,"input_audio_tokens":0,"cache_audio_read_tokens":0,"output_audio_tokens":0,"audio_seconds":0.0,"details":{},"cost":null},"model_name":"demo","model_id":null,"timestamp":"2026-11-16T23:37:41.148943Z","kind":"response","provider_name":"demo","provider_url":null,"canonical_system":null,"provider_details":null,"provider_response_id":null,"finish_reason":"tool_call","run_id":null,"conversation_id":null,"metadata":null,"workspace_ref":null,"history_digest":null,"failed_attempts":null,"state":"complete"},"thinking":"This is the demo model. I know this sentence: it means schedule_recall.","tool_calls":[{"call_id":"pyd_ai_93fa5573beb94c9b8efc41cb99f1b3c6","tool":"schedule_recall","args":{"call_type":"recurring","when":"in 10 minutes","interval_seconds":600,"internal_comment":"Demo: check notes.txt","additional_context_message":"Read notes.txt with read_file and say what it contains."}}]}');
INSERT INTO public.messages (id, session_id, "position", run_id, role, content, is_recall, source, wake_id, label, created_at, data) VALUES ('01a1e6b9-3ab6-74cf-81a8-008f39ff48be', '01a1e6b9-3a01-7218-8b03-b7ff4e2b43d7', 3, '01a1e6b9-3a0f-7206-bfb1-c557d3fa32e7', 'tool', 'Booked: you will wake at 2026-11-16 23:47:41+00:00 Etc/UTC (in 10 min), then every 600 s. Recall id: 01a1e6b9-3aad-7a5f-806c-9bc448b0536c.', 0, NULL, NULL, NULL, 1794872261302652, '{"call_id":"pyd_ai_93fa5573beb94c9b8efc41cb99f1b3c6","tool":"schedule_recall","args":{"call_type":"recurring","when":"in 10 minutes","interval_seconds":600,"internal_comment":"Demo: check notes.txt","additional_context_message":"Read notes.txt with read_file and say what it contains."},"success":true,"metadata":{"recall_id":"01a1e6b9-3aad-7a5f-806c-9bc448b0536c","trigger_at":"2026-11-16T23:47:41.293298+00:00"}}');
INSERT INTO public.messages (id, session_id, "position", run_id, role, content, is_recall, source, wake_id, label, created_at, data) VALUES ('01a1e6b9-3b8f-7015-876c-405d92802490', '01a1e6b9-3a01-7218-8b03-b7ff4e2b43d7', 4, '01a1e6b9-3a0f-7206-bfb1-c557d3fa32e7', 'assistant', 'schedule_recall answered: Booked: you will wake at 2026-11-16 23:47:41+00:00 Etc/UTC (in 10 min), then every 600 s. Recall id: 01a1e6b9-3aad-7a5f-806c-9bc448b0536c.', 0, NULL, NULL, NULL, 1794872261519149, '{"response":{"parts":[{"content":"schedule_recall answered: Booked: you will wake at 2026-11-16 23:47:41+00:00 Etc/UTC (in 10 min), then every 600 s. Recall id: 01a1e6b9-3aad-7a5f-806c-9bc448b0536c.","id":null,"provider_name":null,"provider_details":null,"citations":null,"part_kind":"text"}],"usage":{"input_tokens":210,"cache_write_tokens":0,"cache_write_1h_tokens":0,"cache_read_tokens":0,"output_tokens":20,"output_reasoning_tokens":0,"input_audio_tokens":0,"cache_audio_read_tokens":0,"output_audio_tokens":0,"audio_seconds":0.0,"details":{},"cost":null},"model_name":"demo","model_id":null,"timestamp":"2026-11-16T23:37:41.305863Z","kind":"response","provider_name":"demo","provider_url":null,"canonical_system":null,"provider_details":null,"provider_response_id":null,"finish_reason":"stop","run_id":null,"conversation_id":null,"metadata":null,"workspace_ref":null,"history_digest":null,"failed_attempts":null,"state":"complete"}}');
INSERT INTO public.migrations (number, name, applied_at) VALUES (1, 'first', 1794872258582596);
INSERT INTO public.migrations (number, name, applied_at) VALUES (2, 'session_recalls', 1794872258582596);
INSERT INTO public.migrations (number, name, applied_at) VALUES (3, 'work_and_people', 1794872258582596);
INSERT INTO public.migrations (number, name, applied_at) VALUES (4, 'wake_tools', 1794872258582596);
INSERT INTO public.migrations (number, name, applied_at) VALUES (5, 'subagents', 1794872258582596);
INSERT INTO public.migrations (number, name, applied_at) VALUES (6, 'channels', 1794872258582596);
INSERT INTO public.migrations (number, name, applied_at) VALUES (7, 'outside_help', 1794872258582596);
INSERT INTO public.migrations (number, name, applied_at) VALUES (8, 'notice_views', 1794872258582596);
INSERT INTO public.migrations (number, name, applied_at) VALUES (9, 'notices_taken', 1794872258582596);
INSERT INTO public.migrations (number, name, applied_at) VALUES (10, 'failed_sessions', 1794872258582596);
INSERT INTO public.migrations (number, name, applied_at) VALUES (11, 'agent_databases', 1794872258582596);
INSERT INTO public.pauses (id, user_id, agent_id, started_at, until, reason) VALUES ('01a1e6b9-41cf-7ffd-bab6-028460bd10bd', '00000000-0000-8000-8000-000000000001', '01a1e6b9-3dc3-7902-9d0d-de3c4470bdf6', 1794872263119703, 253370764800000000, 'on holiday');
INSERT INTO public.run_usage (run_id, agent_id, user_id, at, model, input_tokens, output_tokens, cost_micros, model_calls, tool_calls) VALUES ('01a1e6b9-3254-7770-b5dc-7c9ecbed38f1', '00000000-0000-829a-81a3-fc56f6ce7a79', '00000000-0000-8000-8000-000000000001', 1794872259162477, 'demo', 311, 21, 0, 2, 1);
INSERT INTO public.run_usage (run_id, agent_id, user_id, at, model, input_tokens, output_tokens, cost_micros, model_calls, tool_calls) VALUES ('01a1e6b9-33dc-7c6a-b0a1-612b32f5d9bf', '00000000-0000-829a-81a3-fc56f6ce7a79', '00000000-0000-8000-8000-000000000001', 1794872259554026, 'demo', 694, 28, 0, 3, 2);
INSERT INTO public.run_usage (run_id, agent_id, user_id, at, model, input_tokens, output_tokens, cost_micros, model_calls, tool_calls) VALUES ('01a1e6b9-3587-73d4-bd06-be3b225f8f16', '00000000-0000-829a-81a3-fc56f6ce7a79', '00000000-0000-8000-8000-000000000001', 1794872259980592, 'demo', 591, 17, 0, 2, 1);
INSERT INTO public.run_usage (run_id, agent_id, user_id, at, model, input_tokens, output_tokens, cost_micros, model_calls, tool_calls) VALUES ('01a1e6b9-365e-7e3a-962e-368ed697f80f', '00000000-0000-829a-81a3-fc56f6ce7a79', '00000000-0000-8000-8000-000000000001', 1794872260193835, 'demo', 717, 33, 0, 2, 1);
INSERT INTO public.run_usage (run_id, agent_id, user_id, at, model, input_tokens, output_tokens, cost_micros, model_calls, tool_calls) VALUES ('01a1e6b9-37e2-754c-bf5a-55e6a198fb35', '00000000-0000-829a-81a3-fc56f6ce7a79', '00000000-0000-8000-8000-000000000001', 1794872260582110, 'demo', 1452, 46, 0, 3, 2);
INSERT INTO public.run_usage (run_id, agent_id, user_id, at, model, input_tokens, output_tokens, cost_micros, model_calls, tool_calls) VALUES ('01a1e6b9-3a0f-7206-bfb1-c557d3fa32e7', '00000000-0000-829a-81a3-fc56f6ce7a79', '00000000-0000-8000-8000-000000000001', 1794872261139864, 'demo', 367, 33, 0, 2, 1);
INSERT INTO public.runs (id, agent_id, user_id, session_id, wake_id, kind, trigger, scheduled_by, nominal_at, covers, priority, turn, status, reason, error, queued_at, started_at, finished_at, owner, lease_until, fence, attempt, is_resuming, stop_requested_at) VALUES ('01a1e6b9-3254-7770-b5dc-7c9ecbed38f1', '00000000-0000-829a-81a3-fc56f6ce7a79', '00000000-0000-8000-8000-000000000001', '01a1e6b9-320d-7c37-a6f5-1b5ee450de7b', NULL, NULL, 'message', 'user', 1794872259156974, 1, 'normal', 0, 'success', NULL, NULL, 1794872259156974, 1794872259162477, 1794872259533685, '96f3280a62d29397', NULL, 1, 1, 0, NULL);
INSERT INTO public.runs (id, agent_id, user_id, session_id, wake_id, kind, trigger, scheduled_by, nominal_at, covers, priority, turn, status, reason, error, queued_at, started_at, finished_at, owner, lease_until, fence, attempt, is_resuming, stop_requested_at) VALUES ('01a1e6b9-33dc-7c6a-b0a1-612b32f5d9bf', '00000000-0000-829a-81a3-fc56f6ce7a79', '00000000-0000-8000-8000-000000000001', '01a1e6b9-320d-7c37-a6f5-1b5ee450de7b', NULL, NULL, 'message', 'user', 1794872259548711, 1, 'normal', 0, 'success', NULL, NULL, 1794872259548711, 1794872259554026, 1794872259967187, '96f3280a62d29397', NULL, 1, 1, 0, NULL);
INSERT INTO public.runs (id, agent_id, user_id, session_id, wake_id, kind, trigger, scheduled_by, nominal_at, covers, priority, turn, status, reason, error, queued_at, started_at, finished_at, owner, lease_until, fence, attempt, is_resuming, stop_requested_at) VALUES ('01a1e6b9-3587-73d4-bd06-be3b225f8f16', '00000000-0000-829a-81a3-fc56f6ce7a79', '00000000-0000-8000-8000-000000000001', '01a1e6b9-320d-7c37-a6f5-1b5ee450de7b', NULL, NULL, 'message', 'user', 1794872259975990, 1, 'normal', 0, 'success', NULL, NULL, 1794872259975990, 1794872259980592, 1794872260183493, '96f3280a62d29397', NULL, 1, 1, 0, NULL);
INSERT INTO public.runs (id, agent_id, user_id, session_id, wake_id, kind, trigger, scheduled_by, nominal_at, covers, priority, turn, status, reason, error, queued_at, started_at, finished_at, owner, lease_until, fence, attempt, is_resuming, stop_requested_at) VALUES ('01a1e6b9-365e-7e3a-962e-368ed697f80f', '00000000-0000-829a-81a3-fc56f6ce7a79', '00000000-0000-8000-8000-000000000001', '01a1e6b9-320d-7c37-a6f5-1b5ee450de7b', NULL, NULL, 'message', 'user', 1794872260190024, 1, 'normal', 0, 'success', NULL, NULL, 1794872260190024, 1794872260193835, 1794872260570072, '96f3280a62d29397', NULL, 1, 1, 0, NULL);
INSERT INTO public.runs (id, agent_id, user_id, session_id, wake_id, kind, trigger, scheduled_by, nominal_at, covers, priority, turn, status, reason, error, queued_at, started_at, finished_at, owner, lease_until, fence, attempt, is_resuming, stop_requested_at) VALUES ('01a1e6b9-37e2-754c-bf5a-55e6a198fb35', '00000000-0000-829a-81a3-fc56f6ce7a79', '00000000-0000-8000-8000-000000000001', '01a1e6b9-320d-7c37-a6f5-1b5ee450de7b', NULL, NULL, 'message', 'user', 1794872260578247, 1, 'normal', 0, 'success', NULL, NULL, 1794872260578247, 1794872260582110, 1794872261104830, '96f3280a62d29397', NULL, 1, 1, 0, NULL);
INSERT INTO public.runs (id, agent_id, user_id, session_id, wake_id, kind, trigger, scheduled_by, nominal_at, covers, priority, turn, status, reason, error, queued_at, started_at, finished_at, owner, lease_until, fence, attempt, is_resuming, stop_requested_at) VALUES ('01a1e6b9-3a0f-7206-bfb1-c557d3fa32e7', '00000000-0000-829a-81a3-fc56f6ce7a79', '00000000-0000-8000-8000-000000000001', '01a1e6b9-3a01-7218-8b03-b7ff4e2b43d7', NULL, NULL, 'message', 'user', 1794872261135643, 1, 'normal', 0, 'success', NULL, NULL, 1794872261135643, 1794872261139864, 1794872261522716, '96f3280a62d29397', NULL, 1, 1, 0, NULL);
INSERT INTO public.sessions (id, agent_id, user_id, title, origin_session_id, origin_wake_id, origin_label, last_position, last_seq, created_at, updated_at, tool_limit) VALUES ('01a1e6b9-3a01-7218-8b03-b7ff4e2b43d7', '00000000-0000-829a-81a3-fc56f6ce7a79', '00000000-0000-8000-8000-000000000001', 'Mornings', NULL, NULL, NULL, 4, 23, 1794872261121808, 1794872261519149, NULL);
INSERT INTO public.sessions (id, agent_id, user_id, title, origin_session_id, origin_wake_id, origin_label, last_position, last_seq, created_at, updated_at, tool_limit) VALUES ('01a1e6b9-320d-7c37-a6f5-1b5ee450de7b', '00000000-0000-829a-81a3-fc56f6ce7a79', '00000000-0000-8000-8000-000000000001', 'The garden', NULL, NULL, NULL, 24, 103, 1794872259085717, 1794872261100717, NULL);
INSERT INTO public.tokens (id, user_id, name, kind, scope, digest, created_at, expires_at, revoked_at) VALUES ('owner-6c6fd7251b377d6f', '00000000-0000-8000-8000-000000000001', 'owner', 'api', 'admin', '6c6fd7251b377d6fa354d841c17044edd983b15e539fed4a3cdc16c1fcf5d0d0', 1794872258682734, NULL, NULL);
INSERT INTO public.tokens (id, user_id, name, kind, scope, digest, created_at, expires_at, revoked_at) VALUES ('01a1e6b9-31ae-75b9-95a9-7112aac432dd', '00000000-0000-8000-8000-000000000001', 'python-httpx/0.28.1', 'browser', 'admin', '1ae27c7a4a1b927cae7fdad02682bc9c2c86ec68d705d46d91f2e959e529121d', 1794872258990622, 1802648258990622, NULL);
INSERT INTO public.tokens (id, user_id, name, kind, scope, digest, created_at, expires_at, revoked_at) VALUES ('01a1e6b9-3e23-73e5-b8f6-fff6cd3f71e5', '00000000-0000-8000-8000-000000000001', 'phone', 'api', 'read', '650e21d4d753fe8989111afd26f7e614b478c3f725d042505488c77acc10a0e5', 1794872262179753, NULL, NULL);
INSERT INTO public.tokens (id, user_id, name, kind, scope, digest, created_at, expires_at, revoked_at) VALUES ('01a1e6b9-3e52-74e5-a0e9-99c6ce5a50f9', '01a1e6b9-3df4-773f-a643-6a77a535af2a', 'laptop', 'api', 'admin', '45e9ae339d254688d04bc443e05be13c4de769c4230aad47cb790d548dd9b3e7', 1794872262226862, NULL, NULL);
INSERT INTO public.uploads (id, session_id, name, path, size, created_at) VALUES ('01a1e6b9-320d-7cea-89d9-272ebd06809c', '01a1e6b9-320d-7c37-a6f5-1b5ee450de7b', 'plan.txt', '/tmp/fx/postgres/data/agents/00000000-0000-829a-81a3-fc56f6ce7a79/workspace/uploads/01a1e6b9-320d-7c37-a6f5-1b5ee450de7b/plan.txt', 8, 1794872262038450);
INSERT INTO public.users (id, name, role, created_at, deleted_at) VALUES ('00000000-0000-8000-8000-000000000001', 'Owner', 'owner', 1794872258682734, NULL);
INSERT INTO public.users (id, name, role, created_at, deleted_at) VALUES ('01a1e6b9-3df4-773f-a643-6a77a535af2a', 'Grace', 'user', 1794872262132948, NULL);
INSERT INTO public.wakes (id, kind, agent_id, user_id, session_id, slot, call_type, interval_seconds, cron, timezone, wall_clock, until, max_runs, nominal_at, attempt_at, first_due_at, is_missed, held_by, comment, instructions, context_views, session_config, priority, on_miss, scheduled_by, booked_by_run, ephemeral, status, reason, error, delivery_phase, created_session_id, deferrals, failures, runs_started, version, created_at, updated_at, tools, muted, seen_at) VALUES ('01a1e6b9-3aad-7a5f-806c-9bc448b0536c', 'recall', '00000000-0000-829a-81a3-fc56f6ce7a79', '00000000-0000-8000-8000-000000000001', '01a1e6b9-3a01-7218-8b03-b7ff4e2b43d7', 'session:01a1e6b9-3a01-7218-8b03-b7ff4e2b43d7', 'recurring', 600, NULL, 'Etc/UTC', NULL, NULL, NULL, 1794872861293298, 1794872861293298, NULL, 0, NULL, 'Demo: check notes.txt', 'Read notes.txt with read_file and say what it contains.', '[]', NULL, 'normal', 'run_once', 'agent', '01a1e6b9-3a0f-7206-bfb1-c557d3fa32e7', 0, 'pending', NULL, NULL, NULL, NULL, 0, 0, 0, 1, 1794872261293298, 1794872261293298, '["schedule_recall","manage_recall","scheduler","schedule_next_run","cancel_next_run","db_schema","db_create_table","db_alter_table","db_migrate","db_insert","db_upsert","db_update","db_delete","db_restore","db_query","db_execute","db_define_view","db_run_view","db_list_views","db_drop_view","db_import","db_export","notify","read_file","write_file","list_files","search_files","fetch_url","spawn_agent"]', 0, NULL);
INSERT INTO public.wakes (id, kind, agent_id, user_id, session_id, slot, call_type, interval_seconds, cron, timezone, wall_clock, until, max_runs, nominal_at, attempt_at, first_due_at, is_missed, held_by, comment, instructions, context_views, session_config, priority, on_miss, scheduled_by, booked_by_run, ephemeral, status, reason, error, delivery_phase, created_session_id, deferrals, failures, runs_started, version, created_at, updated_at, tools, muted, seen_at) VALUES ('01a1e6b9-3eb4-7985-9940-5af8c3c74d4a', 'next_run', '00000000-0000-829a-81a3-fc56f6ce7a79', '00000000-0000-8000-8000-000000000001', NULL, 'agent:00000000-0000-829a-81a3-fc56f6ce7a79', 'once', NULL, NULL, 'Etc/UTC', NULL, NULL, NULL, 1794958662324981, 1794958662324981, NULL, 0, NULL, '', 'Read notes.txt with read_file.', '[]', NULL, 'normal', 'skip', 'user', NULL, 0, 'pending', NULL, NULL, NULL, NULL, 0, 0, 0, 1, 1794872262324981, 1794872262324981, NULL, 0, NULL);
INSERT INTO public.wakes (id, kind, agent_id, user_id, session_id, slot, call_type, interval_seconds, cron, timezone, wall_clock, until, max_runs, nominal_at, attempt_at, first_due_at, is_missed, held_by, comment, instructions, context_views, session_config, priority, on_miss, scheduled_by, booked_by_run, ephemeral, status, reason, error, delivery_phase, created_session_id, deferrals, failures, runs_started, version, created_at, updated_at, tools, muted, seen_at) VALUES ('01a1e6b9-3ee8-7741-89f5-d6b9e6869b4f', 'message', '00000000-0000-829a-81a3-fc56f6ce7a79', '00000000-0000-8000-8000-000000000001', '01a1e6b9-320d-7c37-a6f5-1b5ee450de7b', NULL, 'once', NULL, NULL, 'Etc/UTC', NULL, NULL, NULL, 1794944262376937, 1794944262376937, NULL, 0, NULL, 'Tomorrow', 'Read notes.txt with read_file.', '[]', NULL, 'normal', 'run_once', 'user', NULL, 0, 'pending', NULL, NULL, NULL, NULL, 0, 0, 0, 1, 1794872262376937, 1794872262376937, NULL, 0, NULL);
INSERT INTO public.wakes (id, kind, agent_id, user_id, session_id, slot, call_type, interval_seconds, cron, timezone, wall_clock, until, max_runs, nominal_at, attempt_at, first_due_at, is_missed, held_by, comment, instructions, context_views, session_config, priority, on_miss, scheduled_by, booked_by_run, ephemeral, status, reason, error, delivery_phase, created_session_id, deferrals, failures, runs_started, version, created_at, updated_at, tools, muted, seen_at) VALUES ('01a1e6b9-3f19-77c4-abb9-971771b09517', 'recall', '00000000-0000-829a-81a3-fc56f6ce7a79', '00000000-0000-8000-8000-000000000001', '01a1e6b9-320d-7c37-a6f5-1b5ee450de7b', 'session:01a1e6b9-320d-7c37-a6f5-1b5ee450de7b', 'once', NULL, NULL, 'Etc/UTC', NULL, NULL, NULL, 1795045062425462, 1795045062425462, NULL, 0, NULL, 'Look at the notes', 'Read notes.txt with read_file.', '[]', NULL, 'normal', 'run_once', 'user', NULL, 0, 'pending', NULL, NULL, NULL, NULL, 0, 0, 0, 1, 1794872262425462, 1794872262425462, NULL, 0, NULL);
ALTER TABLE ONLY public.agents
    ADD CONSTRAINT agents_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.approvals
    ADD CONSTRAINT approvals_pkey PRIMARY KEY (run_id, call_id);
ALTER TABLE ONLY public.changelog_heads
    ADD CONSTRAINT changelog_heads_pkey PRIMARY KEY (agent_id);
ALTER TABLE ONLY public.channels
    ADD CONSTRAINT channels_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.channels
    ADD CONSTRAINT channels_user_id_name_key UNIQUE (user_id, name);
ALTER TABLE ONLY public.events
    ADD CONSTRAINT events_pkey PRIMARY KEY (session_id, seq);
ALTER TABLE ONLY public.images
    ADD CONSTRAINT images_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.messages
    ADD CONSTRAINT messages_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.messages
    ADD CONSTRAINT messages_session_id_position_key UNIQUE (session_id, "position");
ALTER TABLE ONLY public.migrations
    ADD CONSTRAINT migrations_pkey PRIMARY KEY (number);
ALTER TABLE ONLY public.notifications
    ADD CONSTRAINT notifications_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.notifications
    ADD CONSTRAINT notifications_user_id_once_key_key UNIQUE (user_id, once_key);
ALTER TABLE ONLY public.passes
    ADD CONSTRAINT passes_pkey PRIMARY KEY (digest);
ALTER TABLE ONLY public.pauses
    ADD CONSTRAINT pauses_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.run_usage
    ADD CONSTRAINT run_usage_pkey PRIMARY KEY (run_id);
ALTER TABLE ONLY public.runs
    ADD CONSTRAINT runs_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.sessions
    ADD CONSTRAINT sessions_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.tokens
    ADD CONSTRAINT tokens_digest_key UNIQUE (digest);
ALTER TABLE ONLY public.tokens
    ADD CONSTRAINT tokens_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.uploads
    ADD CONSTRAINT uploads_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.users
    ADD CONSTRAINT users_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.wakes
    ADD CONSTRAINT wakes_pkey PRIMARY KEY (id);
CREATE INDEX agents_of_user ON public.agents USING btree (user_id);
CREATE INDEX approvals_of_session ON public.approvals USING btree (session_id);
CREATE INDEX decisions_of_wake ON public.decisions USING btree (wake_id, at, "position");
CREATE INDEX events_at ON public.events USING btree (at);
CREATE INDEX images_of_session ON public.images USING btree (session_id);
CREATE INDEX messages_of_people ON public.messages USING btree (session_id, created_at) WHERE ((role = 'user'::text) AND (wake_id IS NULL));
CREATE INDEX messages_of_run ON public.messages USING btree (run_id) WHERE (run_id IS NOT NULL);
CREATE INDEX notifications_untold ON public.notifications USING btree (created_at) WHERE (told_at IS NULL);
CREATE INDEX pauses_of_user ON public.pauses USING btree (user_id, until);
CREATE INDEX pauses_until ON public.pauses USING btree (until);
CREATE INDEX run_usage_of_agent ON public.run_usage USING btree (agent_id, at);
CREATE INDEX runs_failed ON public.runs USING btree (session_id, finished_at) WHERE (status = ANY (ARRAY['failed'::text, 'interrupted'::text]));
CREATE INDEX runs_of_agent ON public.runs USING btree (agent_id, queued_at);
CREATE INDEX runs_of_user ON public.runs USING btree (user_id, queued_at, id);
CREATE INDEX runs_of_wake ON public.runs USING btree (wake_id, nominal_at) WHERE (wake_id IS NOT NULL);
CREATE UNIQUE INDEX runs_one_per_session ON public.runs USING btree (session_id) WHERE (status = 'running'::text);
CREATE INDEX runs_queue ON public.runs USING btree (turn, nominal_at, id) WHERE (status = 'queued'::text);
CREATE INDEX runs_queue_low ON public.runs USING btree (queued_at) WHERE ((status = 'queued'::text) AND (priority = 'low'::text));
CREATE INDEX runs_queue_of_session ON public.runs USING btree (session_id, nominal_at) WHERE (status = 'queued'::text);
CREATE INDEX runs_queue_of_users ON public.runs USING btree (session_id, queued_at) WHERE ((status = 'queued'::text) AND (trigger = 'message'::text));
CREATE INDEX sessions_of_user ON public.sessions USING btree (user_id, updated_at, id);
CREATE INDEX tokens_of_user ON public.tokens USING btree (user_id);
CREATE INDEX uploads_of_session ON public.uploads USING btree (session_id);
CREATE INDEX wakes_due ON public.wakes USING btree (attempt_at, created_at, id) WHERE (status = 'pending'::text);
CREATE INDEX wakes_ephemeral ON public.wakes USING btree (ephemeral) WHERE (ephemeral = 1);
CREATE INDEX wakes_held ON public.wakes USING btree (user_id, agent_id) WHERE (held_by IS NOT NULL);
CREATE INDEX wakes_of_session ON public.wakes USING btree (session_id) WHERE (session_id IS NOT NULL);
CREATE INDEX wakes_of_user ON public.wakes USING btree (user_id, nominal_at, id);
CREATE INDEX wakes_recurring_recalls ON public.wakes USING btree (created_at) WHERE ((status = 'pending'::text) AND (kind = 'recall'::text) AND (call_type = 'recurring'::text));
CREATE UNIQUE INDEX wakes_slot ON public.wakes USING btree (slot) WHERE ((slot IS NOT NULL) AND (status = ANY (ARRAY['pending'::text, 'queued'::text])));
ALTER TABLE ONLY public.agents
    ADD CONSTRAINT agents_user_id_fkey FOREIGN KEY (user_id) REFERENCES public.users(id);
ALTER TABLE ONLY public.approvals
    ADD CONSTRAINT approvals_session_id_fkey FOREIGN KEY (session_id) REFERENCES public.sessions(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.channels
    ADD CONSTRAINT channels_user_id_fkey FOREIGN KEY (user_id) REFERENCES public.users(id);
ALTER TABLE ONLY public.events
    ADD CONSTRAINT events_session_id_fkey FOREIGN KEY (session_id) REFERENCES public.sessions(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.images
    ADD CONSTRAINT images_session_id_fkey FOREIGN KEY (session_id) REFERENCES public.sessions(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.messages
    ADD CONSTRAINT messages_session_id_fkey FOREIGN KEY (session_id) REFERENCES public.sessions(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.notifications
    ADD CONSTRAINT notifications_user_id_fkey FOREIGN KEY (user_id) REFERENCES public.users(id);
ALTER TABLE ONLY public.passes
    ADD CONSTRAINT passes_token_id_fkey FOREIGN KEY (token_id) REFERENCES public.tokens(id);
ALTER TABLE ONLY public.passes
    ADD CONSTRAINT passes_user_id_fkey FOREIGN KEY (user_id) REFERENCES public.users(id);
ALTER TABLE ONLY public.pauses
    ADD CONSTRAINT pauses_agent_id_fkey FOREIGN KEY (agent_id) REFERENCES public.agents(id);
ALTER TABLE ONLY public.pauses
    ADD CONSTRAINT pauses_user_id_fkey FOREIGN KEY (user_id) REFERENCES public.users(id);
ALTER TABLE ONLY public.sessions
    ADD CONSTRAINT sessions_agent_id_fkey FOREIGN KEY (agent_id) REFERENCES public.agents(id);
ALTER TABLE ONLY public.sessions
    ADD CONSTRAINT sessions_user_id_fkey FOREIGN KEY (user_id) REFERENCES public.users(id);
ALTER TABLE ONLY public.tokens
    ADD CONSTRAINT tokens_user_id_fkey FOREIGN KEY (user_id) REFERENCES public.users(id);
ALTER TABLE ONLY public.uploads
    ADD CONSTRAINT uploads_session_id_fkey FOREIGN KEY (session_id) REFERENCES public.sessions(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.wakes
    ADD CONSTRAINT wakes_agent_id_fkey FOREIGN KEY (agent_id) REFERENCES public.agents(id);
ALTER TABLE ONLY public.wakes
    ADD CONSTRAINT wakes_user_id_fkey FOREIGN KEY (user_id) REFERENCES public.users(id);
