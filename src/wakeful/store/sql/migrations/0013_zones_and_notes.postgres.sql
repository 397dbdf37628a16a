-- An agent without a zone of its own uses its user's. A wake that needed none has none.
ALTER TABLE agents ALTER COLUMN timezone DROP NOT NULL;
ALTER TABLE wakes ALTER COLUMN timezone DROP NOT NULL;

-- A person's own zone, told by their browser or command line. Null: not known.
ALTER TABLE users ADD COLUMN timezone TEXT;

-- 1: the page is still to ask whether the agent should use its user's zone. Agents from before people had one.
ALTER TABLE agents ADD COLUMN offers_zone BIGINT NOT NULL DEFAULT 0;
UPDATE agents SET offers_zone = 1;

-- The time that was asked for, why it was moved, and what was booked: {"requested", "requested_at", "moved_by", "final"}.
ALTER TABLE wakes ADD COLUMN booking TEXT;

-- What people should know about a run that succeeded: did_nothing, or why it ended early.
ALTER TABLE runs ADD COLUMN note TEXT;
UPDATE runs SET note = reason
WHERE
    status = 'success' AND reason IN (
        'iteration_limit', 'budget', 'repeated_calls', 'bad_calls', 'too_many_calls', 'answer_too_long', 'empty_answer'
    );
