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

-- The terms of each, made by domain/sessions/folding.py; the tokenizer only splits them at spaces.
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

-- Sessions and messages with ids from these on are indexed; null: all of them.
CREATE TABLE search_progress (
    id BIGINT PRIMARY KEY,
    sessions_before TEXT,
    messages_before TEXT,
    next_number BIGINT NOT NULL,
    done BIGINT NOT NULL,
    total BIGINT NOT NULL
);
INSERT INTO search_progress (id, sessions_before, messages_before, next_number, done, total)
SELECT
    1, (SELECT MAX(id) || '~' FROM sessions), (SELECT MAX(id) || '~' FROM messages), 0, 0,
    (SELECT COUNT(*) FROM sessions) + (SELECT COUNT(*) FROM messages);
