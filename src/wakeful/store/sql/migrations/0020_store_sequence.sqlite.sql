-- A number that goes up while the store is written to. It is kept in a file beside the store too: if that one is ahead, a
-- part of the store has been lost, such as its journal.
CREATE TABLE store_sequence (
    only_row INTEGER PRIMARY KEY CHECK (only_row = 1),
    number INTEGER NOT NULL,
    at INTEGER NOT NULL
);
INSERT INTO store_sequence VALUES (1, 0, 0);
