-- name: save_usage
-- Totals so far, so saving them twice does no harm.
INSERT INTO run_usage (
    run_id, agent_id, user_id, at, model, input_tokens, output_tokens, cost_micros, model_calls, tool_calls
)
VALUES (
    :run_id, :agent_id, :user_id, :at, :model, :input_tokens, :output_tokens, :cost_micros, :model_calls, :tool_calls
)
ON CONFLICT (run_id) DO UPDATE SET
    model = excluded.model, input_tokens = excluded.input_tokens, output_tokens = excluded.output_tokens,
    cost_micros = excluded.cost_micros, model_calls = excluded.model_calls, tool_calls = excluded.tool_calls;

-- name: usage_of_run
SELECT * FROM run_usage WHERE run_id = :run_id;

-- name: usage_of_runs
SELECT u.* FROM rows(run_usage) AS n
JOIN run_usage u ON u.run_id = n.run_id;

-- name: usage_of_agent
-- What an agent has spent since an instant, in runs that began after it. What lies far ahead is from before the clock was
-- set back.
SELECT
    COALESCE(SUM(input_tokens + output_tokens), 0) AS tokens, COALESCE(SUM(cost_micros), 0) AS cost_micros,
    COALESCE(SUM(model_calls), 0) AS model_calls, COUNT(*) AS runs, COUNT(*) - COUNT(cost_micros) AS unpriced_runs
FROM run_usage WHERE agent_id = :agent_id AND at >= :since AND at <= :until AND run_id <> :but_run;
