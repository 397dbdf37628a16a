"""Routes for an agent's database."""
