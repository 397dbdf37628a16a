-- name: take_heartbeat_ping
-- One node pings for all: the first to find the last ping too old. At once if the last one said that no node was ready,
-- and this one is; also if it lies ahead, because the clock was set back.
INSERT INTO heartbeat_pings (id, pinged_at, is_ready) VALUES (1, :now, :is_ready)
ON CONFLICT (id) DO UPDATE SET pinged_at = excluded.pinged_at, is_ready = excluded.is_ready
WHERE
    heartbeat_pings.pinged_at <= :before OR heartbeat_pings.pinged_at > excluded.pinged_at
    OR heartbeat_pings.is_ready < excluded.is_ready
RETURNING id;
