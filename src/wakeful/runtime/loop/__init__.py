"""The agent loop: one run from its first prompt to its last answer."""
