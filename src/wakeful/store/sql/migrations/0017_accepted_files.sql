-- Which contents of the files that instruct an agent (AGENTS.md, its skills) a person saved or accepted. Others stay out
-- of prompts: a program that the agent started could have written them.
CREATE TABLE accepted_files (
    agent_id TEXT NOT NULL,
    path TEXT NOT NULL,
    digest TEXT NOT NULL,
    accepted_at BIGINT NOT NULL,
    PRIMARY KEY (agent_id, path, digest)
);

-- 0: made before contents were compared, so the files that are there count as accepted at the next start.
ALTER TABLE agents ADD COLUMN files_compared BIGINT NOT NULL DEFAULT 1;
UPDATE agents SET files_compared = 0;
