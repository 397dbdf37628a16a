-- Programs of MCP servers that were in the settings file before this server could confine them. Such a program runs
-- unconfined until its entry says what it reaches.
CREATE TABLE unconfined_mcp_servers (name TEXT PRIMARY KEY);

-- The names stand in the settings file, which no migration sees. '*' asks the first start after this to note them; a
-- new store has no users yet, so there it is not asked for, and every program is confined.
INSERT INTO unconfined_mcp_servers (name) SELECT '*' WHERE EXISTS (SELECT 1 FROM users);
