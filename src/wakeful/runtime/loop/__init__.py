"""One run from its first prompt to its last answer."""
