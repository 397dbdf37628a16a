"""MCP servers whose tools agents use."""
