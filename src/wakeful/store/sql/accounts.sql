-- name: users
SELECT * FROM users WHERE deleted_at IS NULL ORDER BY created_at, id;

-- name: save_user
UPDATE users SET name = :name, role = :role, timezone = :timezone WHERE id = :id AND deleted_at IS NULL RETURNING id;

-- name: hold_owners
-- Removing an owner locks all of them, so that two removals at once cannot remove the last one: the second waits here and
-- reads them again.
SELECT * FROM users WHERE role = 'owner' AND deleted_at IS NULL ORDER BY created_at, id /*postgres FOR NO KEY UPDATE */;

-- name: add_first_owner
-- Of two nodes that start at once, one adds the row and the other finds it.
INSERT INTO users (id, name, role, created_at) VALUES (:id, :name, :role, :created_at)
ON CONFLICT (id) DO NOTHING
RETURNING id;

-- name: add_token
INSERT INTO tokens (id, user_id, name, kind, scope, digest, created_at, expires_at, revoked_at, page_digest)
VALUES (:id, :user_id, :name, :kind, :scope, :digest, :created_at, :expires_at, :revoked_at, :page_digest);

-- name: put_owner_token
-- Its id is made from its digest, so the same token is the same row at every start.
INSERT INTO tokens (id, user_id, name, kind, scope, digest, created_at)
VALUES (:id, :user_id, :name, :kind, :scope, :digest, :created_at)
ON CONFLICT (id) DO UPDATE SET user_id = excluded.user_id;

-- name: other_owner_tokens
-- The ones that earlier starts put there, but for those in the settings of other running nodes.
SELECT id FROM tokens
WHERE
    id LIKE 'owner-%' AND id <> :id
    AND (
        SELECT 1 FROM nodes n WHERE n.token_id = tokens.id AND n.owner <> :owner AND n.seen_at > :since LIMIT 1
    ) IS NULL;

-- name: drop_token
DELETE FROM tokens WHERE id = :id;

-- name: drop_passes_of_token
DELETE FROM passes WHERE token_id = :token_id;

-- name: token_by_digest
-- Also one that is revoked or has expired.
SELECT * FROM tokens WHERE digest = :digest;

-- name: identity_by_digest
-- Of a program. A browser's cookie reaches every server on its host, so by itself it is nobody's token.
SELECT u.*, t.id AS token_id, t.name AS token_name, t.scope, t.kind, t.created_at AS token_created_at
FROM tokens t
JOIN users u ON u.id = t.user_id
WHERE
    t.digest = :digest AND t.kind = 'api' AND t.revoked_at IS NULL AND (t.expires_at IS NULL OR t.expires_at > :now)
    AND u.deleted_at IS NULL;

-- name: identity_of_browser
SELECT u.*, t.id AS token_id, t.name AS token_name, t.scope, t.kind, t.created_at AS token_created_at
FROM tokens t
JOIN users u ON u.id = t.user_id
WHERE
    t.digest = :digest AND t.kind = 'browser' AND t.page_digest = :page_digest AND t.revoked_at IS NULL AND (t.expires_at IS NULL OR t.expires_at > :now)
    AND u.deleted_at IS NULL;

-- name: identity_by_token
SELECT u.*, t.id AS token_id, t.name AS token_name, t.scope, t.kind, t.created_at AS token_created_at
FROM tokens t
JOIN users u ON u.id = t.user_id
WHERE
    t.id = :id AND t.revoked_at IS NULL AND (t.expires_at IS NULL OR t.expires_at > :now)
    AND u.deleted_at IS NULL;

-- name: valid_tokens
-- Which of these still let someone in; n.created_at is the instant of asking.
SELECT t.id
FROM rows(tokens) AS n
JOIN tokens t ON t.id = n.id
JOIN users u ON u.id = t.user_id
WHERE t.revoked_at IS NULL AND (t.expires_at IS NULL OR t.expires_at > n.created_at) AND u.deleted_at IS NULL;

-- name: tokens_of_user
-- Without browsers that logged in before there were page secrets: their tokens let nobody in.
SELECT * FROM tokens
WHERE
    user_id = :user_id AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > :now)
    AND (kind = 'api' OR page_digest IS NOT NULL)
ORDER BY created_at, id;

-- name: revoke_token
UPDATE tokens SET revoked_at = :now WHERE id = :id AND user_id = :user_id AND revoked_at IS NULL RETURNING id;

-- name: renew_login
UPDATE tokens SET created_at = :now WHERE id = :id AND kind = 'browser' AND revoked_at IS NULL RETURNING id;

-- name: revoke_browsers
UPDATE tokens SET revoked_at = :now WHERE kind = 'browser' AND revoked_at IS NULL RETURNING id;

-- name: drop_passes
DELETE FROM passes;

-- name: delete_old_tokens
-- Those that let nobody in for a while. The owner's own stays, so that a revoked one is still known as revoked.
DELETE FROM tokens
WHERE
    (expires_at < :before OR revoked_at < :before) AND id NOT LIKE 'owner-%'
    AND NOT EXISTS (SELECT 1 FROM passes p WHERE p.token_id = tokens.id)
RETURNING id;

-- name: delete_old_passes
DELETE FROM passes WHERE expires_at <= :now OR expires_at > :latest;

-- name: add_pass
INSERT INTO passes (digest, purpose, user_id, token_id, expires_at)
VALUES (:digest, :purpose, :user_id, :token_id, :expires_at);

-- name: count_tickets
SELECT COUNT(*) AS unused FROM passes
WHERE token_id = :token_id AND purpose <> 'login' AND expires_at > :now AND expires_at <= :latest;

-- name: use_pass
-- Taking it is removing it, so of two who try only one gets it. One that is good for too long is from before the clock was
-- set back.
DELETE FROM passes
WHERE
    digest = :digest AND purpose = :purpose AND expires_at > :now AND expires_at <= :latest
    AND EXISTS (SELECT 1 FROM users u WHERE u.id = passes.user_id AND u.deleted_at IS NULL)
RETURNING user_id, token_id;
