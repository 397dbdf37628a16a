"""Models in the store."""
