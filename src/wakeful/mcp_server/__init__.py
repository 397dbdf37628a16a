"""This server as an MCP server, for programs."""
