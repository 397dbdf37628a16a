-- name: blocking_move
-- A copy of an embedded store that no server may use: it is not whole, or was undone.
SELECT finished_at, undone_at FROM store_moves WHERE finished_at IS NULL OR undone_at IS NOT NULL LIMIT 1;
