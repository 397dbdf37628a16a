"""Users, their tokens, and login."""
