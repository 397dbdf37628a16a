"""Commands for agents and their settings."""
