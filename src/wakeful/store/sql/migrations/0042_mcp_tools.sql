-- The tools that an MCP server listed at its last start: a JSON object of names and fingerprints.
CREATE TABLE mcp_tools (server TEXT PRIMARY KEY, tools TEXT NOT NULL);

-- Until now a tool of an MCP server could have the name of a built-in one. The servers are in the settings file, which
-- no migration sees: '*' asks the first start after this to drop stored names that may mean either.
INSERT INTO mcp_tools (server, tools) SELECT '*', '{}' WHERE EXISTS (SELECT 1 FROM users);
