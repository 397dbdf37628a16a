"""Routes for agents and their settings."""
