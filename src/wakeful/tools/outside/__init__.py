"""Tools from outside: MCP servers that the settings file names."""
