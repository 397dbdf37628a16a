"""The MCP server at /mcp: programs outside book wakes, ask agents and read what became of both."""
