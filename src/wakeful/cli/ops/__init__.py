"""Commands about a server: login, status, doctor, logs, settings, MCP servers."""
