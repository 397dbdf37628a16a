-- The schema of 0.2.0: what only SQLite has, or has in another form.

-- The recalls of a session under the names of their door.
CREATE VIEW session_recalls AS
SELECT
    id,
    session_id,
    call_type,
    strftime('%Y-%m-%dT%H:%M:%fZ', nominal_at / 1000000.0, 'unixepoch') AS trigger_at,
    interval_seconds,
    comment AS internal_comment,
    instructions AS additional_context_message,
    CASE
        WHEN status IN ('pending', 'queued') THEN 'pending'
        WHEN status IN ('running', 'fired') THEN 'fired'
        ELSE 'cancelled'
    END AS status,
    strftime('%Y-%m-%dT%H:%M:%fZ', created_at / 1000000.0, 'unixepoch') AS created_at,
    strftime('%Y-%m-%dT%H:%M:%fZ', updated_at / 1000000.0, 'unixepoch') AS updated_at
FROM wakes
WHERE kind = 'recall';

-- A number that goes up while the store is written to. It is kept in a file beside the store too: if that one is ahead, a
-- part of the store has been lost, such as its journal.
CREATE TABLE store_sequence (
    only_row INTEGER PRIMARY KEY CHECK (only_row = 1),
    number INTEGER NOT NULL,
    at INTEGER NOT NULL
);
INSERT INTO store_sequence VALUES (1, 0, 0);

-- Texts that can be searched: messages, and the titles of sessions (message_id is null). A higher number is a later text;
-- what was there before is indexed in the background, with numbers below 1.
CREATE TABLE search_texts (
    number INTEGER PRIMARY KEY,
    user_id TEXT NOT NULL,
    session_id TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    message_id TEXT UNIQUE REFERENCES messages (id) ON DELETE CASCADE,
    terms TEXT NOT NULL
);
CREATE INDEX search_texts_of_session ON search_texts (session_id);
CREATE UNIQUE INDEX search_titles ON search_texts (session_id) WHERE message_id IS NULL;

-- The terms of each, made by core/search.py; the tokenizer only splits them at spaces.
CREATE VIRTUAL TABLE search_terms USING fts5 (
    terms, content = '', contentless_delete = 1, detail = none,
    tokenize = "unicode61 remove_diacritics 0 categories 'L* M* N* P* S* Z* C*' separators ' '"
);

CREATE TRIGGER search_text_added AFTER INSERT ON search_texts BEGIN
    INSERT INTO search_terms (rowid, terms) VALUES (new.number, new.terms);
    UPDATE search_texts SET terms = '' WHERE number = new.number;
END;

CREATE TRIGGER search_text_deleted AFTER DELETE ON search_texts BEGIN
    DELETE FROM search_terms WHERE rowid = old.number;
END;
