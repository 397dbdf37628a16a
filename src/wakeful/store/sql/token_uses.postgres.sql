-- name: lock_token
-- One transaction of a token at a time counts its uses and adds one: two nodes would both find room for the last.
SELECT 1 AS is_locked FROM pg_advisory_xact_lock(hashtextextended(:token_id, 31));
