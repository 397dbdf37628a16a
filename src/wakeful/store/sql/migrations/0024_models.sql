-- Models that an owner added. The key is encrypted with the device key; provider and address are authenticated with it.
CREATE TABLE models (
    name TEXT PRIMARY KEY,
    provider TEXT NOT NULL,
    model TEXT NOT NULL,
    address TEXT NOT NULL,
    encrypted_key TEXT,
    source TEXT NOT NULL,
    context_window BIGINT,
    output_limit BIGINT,
    input_price DOUBLE PRECISION,
    output_price DOUBLE PRECISION,
    tool_calls TEXT,
    images BIGINT,
    thinking BIGINT,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL
);

-- What the last test of each model found out, also of those that the settings name.
CREATE TABLE model_tests (
    name TEXT PRIMARY KEY,
    subject TEXT NOT NULL,
    tool_calls TEXT NOT NULL,
    tested_at BIGINT NOT NULL
);

-- The model of agents without one of their own, unless the settings name it: one row with the id 1, or none.
CREATE TABLE default_model (id BIGINT PRIMARY KEY, model TEXT NOT NULL);
