-- The agents that an agent may give a task to.
ALTER TABLE agents ADD COLUMN subagents TEXT NOT NULL DEFAULT '[]';
