-- name: models
SELECT * FROM models ORDER BY name;

-- name: model
SELECT * FROM models WHERE name = :name;

-- name: lock_model
-- Read one in order to change it.
SELECT * FROM models WHERE name = :name /*postgres FOR UPDATE */;

-- name: add_model
-- No row comes back if the name is taken.
INSERT INTO models (
    name, provider, model, address, encrypted_key, source, context_window, output_limit, input_price, output_price,
    tool_calls, images, thinking, created_at, updated_at
)
VALUES (
    :name, :provider, :model, :address, :encrypted_key, :source, :context_window, :output_limit, :input_price,
    :output_price, :tool_calls, :images, :thinking, :created_at, :updated_at
)
ON CONFLICT (name) DO NOTHING
RETURNING name;

-- name: save_model
UPDATE models
SET
    provider = :provider, model = :model, address = :address, encrypted_key = :encrypted_key,
    context_window = :context_window, output_limit = :output_limit, input_price = :input_price,
    output_price = :output_price, tool_calls = :tool_calls, images = :images, thinking = :thinking,
    updated_at = :updated_at
WHERE name = :name;

-- name: delete_model
DELETE FROM models WHERE name = :name RETURNING name;

-- name: agents_with_models
-- The agents that name any model.
SELECT a.name, a.model, a.allowed_models, u.name AS user_name
FROM agents a
JOIN users u ON u.id = a.user_id
WHERE
    a.deleted_at IS NULL AND u.deleted_at IS NULL
    AND (a.model IS NOT NULL OR a.allowed_models <> '[]')
ORDER BY a.name, a.id;

-- name: model_tests
SELECT * FROM model_tests;

-- name: save_model_test
INSERT INTO model_tests (name, subject, tool_calls, tested_at) VALUES (:name, :subject, :tool_calls, :tested_at)
ON CONFLICT (name) DO UPDATE
SET subject = excluded.subject, tool_calls = excluded.tool_calls, tested_at = excluded.tested_at;

-- name: delete_model_test
DELETE FROM model_tests WHERE name = :name;

-- name: default_model
SELECT model FROM default_model WHERE id = 1;

-- name: save_default_model
INSERT INTO default_model (id, model) VALUES (1, :model) ON CONFLICT (id) DO UPDATE SET model = excluded.model;

-- name: delete_default_model
DELETE FROM default_model WHERE id = 1;
