-- name: add_user
INSERT INTO users (id, name, role, timezone, created_at, deleted_at)
VALUES (:id, :name, :role, :timezone, :created_at, :deleted_at);

-- name: user_by_id
SELECT * FROM users WHERE id = :id;

-- name: delete_user
UPDATE users SET deleted_at = :now WHERE id = :id AND deleted_at IS NULL RETURNING id;

-- name: add_agent
INSERT INTO agents (
    id, user_id, name, description, model, allowed_models, system_prompt, toolsets, mcp_servers, ask_before, profiles,
    may_write_skills, subagents, planning, thinking_level, max_iterations, budgets, database_mb, timezone, self_scheduling, bounds,
    run_limit_seconds, created_at, updated_at
)
VALUES (
    :id, :user_id, :name, :description, :model, :allowed_models, :system_prompt, :toolsets, :mcp_servers, :ask_before, :profiles,
    :may_write_skills, :subagents, :planning, :thinking_level, :max_iterations, :budgets, :database_mb, :timezone, :self_scheduling,
    :bounds, :run_limit_seconds, :created_at, :updated_at
);

-- name: add_first_agent
-- For a user who has never had one, whichever node asks first.
INSERT INTO agents (
    id, user_id, name, description, model, allowed_models, system_prompt, toolsets, mcp_servers, ask_before, profiles,
    may_write_skills, subagents, planning, thinking_level, max_iterations, budgets, database_mb, timezone, self_scheduling, bounds,
    run_limit_seconds, created_at, updated_at
)
SELECT
    n.id, n.user_id, n.name, n.description, n.model, n.allowed_models, n.system_prompt, n.toolsets, n.mcp_servers, n.ask_before,
    n.profiles, n.may_write_skills, n.subagents, n.planning, n.thinking_level, n.max_iterations, n.budgets, n.database_mb, n.timezone,
    n.self_scheduling, n.bounds, n.run_limit_seconds, n.created_at, n.updated_at
FROM rows(agents) AS n
WHERE NOT EXISTS (SELECT 1 FROM agents a WHERE a.user_id = n.user_id)
ON CONFLICT DO NOTHING
RETURNING id;

-- name: delete_agent
UPDATE agents SET deleted_at = :now WHERE id = :id AND deleted_at IS NULL RETURNING id, user_id;

-- name: save_agent
UPDATE agents
SET
    name = :name, description = :description, model = :model, allowed_models = :allowed_models, system_prompt = :system_prompt, toolsets = :toolsets,
    mcp_servers = :mcp_servers, ask_before = :ask_before, profiles = :profiles,
    may_write_skills = :may_write_skills, subagents = :subagents,
    planning = :planning, thinking_level = :thinking_level, max_iterations = :max_iterations, budgets = :budgets,
    database_mb = :database_mb,
    timezone = :timezone, offers_zone = :offers_zone, self_scheduling = :self_scheduling, bounds = :bounds,
    run_limit_seconds = :run_limit_seconds, updated_at = :updated_at
WHERE id = :id AND user_id = :user_id AND deleted_at IS NULL
RETURNING id;

-- name: agent_by_id
SELECT a.*, u.timezone AS user_timezone FROM agents a JOIN users u ON u.id = a.user_id
WHERE a.id = :id AND a.deleted_at IS NULL;

-- name: agent_of_user
SELECT a.*, u.timezone AS user_timezone FROM agents a JOIN users u ON u.id = a.user_id
WHERE a.id = :id AND a.user_id = :user_id AND a.deleted_at IS NULL;

-- name: lock_agent_of_user
-- Read an agent in order to change it: no other node changes it before we are done.
SELECT a.*, u.timezone AS user_timezone FROM agents a JOIN users u ON u.id = a.user_id
WHERE a.id = :id AND a.user_id = :user_id AND a.deleted_at IS NULL /*postgres FOR UPDATE OF a */;

-- name: agent_ids_of_user
SELECT id FROM agents WHERE user_id = :user_id AND deleted_at IS NULL ORDER BY created_at, id;

-- name: agents_of_user
SELECT a.*, u.timezone AS user_timezone FROM agents a JOIN users u ON u.id = a.user_id
WHERE a.user_id = :user_id AND a.deleted_at IS NULL ORDER BY a.created_at, a.id;

-- name: ended_agents
-- Whose files may be gone only in part, if a crash came in between.
SELECT id FROM agents WHERE deleted_at IS NOT NULL;

-- name: save_changelog_head
-- Never back: of two nodes the one that was later has the word.
INSERT INTO changelog_heads (agent_id, entry, hash) VALUES (:agent_id, :entry, :hash)
ON CONFLICT (agent_id) DO UPDATE SET entry = excluded.entry, hash = excluded.hash
WHERE changelog_heads.entry < excluded.entry;

-- name: changelog_head
SELECT entry, hash FROM changelog_heads WHERE agent_id = :agent_id;

-- name: forget_changelog_head
DELETE FROM changelog_heads WHERE agent_id = :agent_id;

-- name: add_pause
INSERT INTO pauses (id, user_id, agent_id, started_at, until, reason)
VALUES (:id, :user_id, :agent_id, :started_at, :until, :reason);

-- name: end_pauses
-- A pause that is lifted keeps its row: how long it held is part of the story of what waited for it.
UPDATE pauses SET until = :now
WHERE user_id = :user_id AND until > :now
AND ((agent_id IS NULL AND CAST(:agent_id AS TEXT) IS NULL) OR agent_id = :agent_id)
RETURNING id;

-- name: pauses_made_after
SELECT * FROM pauses WHERE started_at > :at;

-- name: move_pause
UPDATE pauses SET started_at = :started_at, until = :until WHERE id = :id;

-- name: pauses_since
-- Every pause that reaches past an instant.
SELECT * FROM pauses WHERE until > :since ORDER BY started_at;

-- name: pauses_of_user
SELECT * FROM pauses WHERE user_id = :user_id AND until > :since ORDER BY started_at;

-- name: pauses_of_agent
SELECT * FROM pauses
WHERE user_id = :user_id AND (agent_id IS NULL OR agent_id = :agent_id) AND until > :since
ORDER BY started_at;
