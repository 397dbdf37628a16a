"""The inbox of a person."""
