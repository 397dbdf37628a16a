"""Rules of agents: settings, profiles, skills, instruction files, MCP servers, data directories."""
