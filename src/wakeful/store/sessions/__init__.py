"""Rows of sessions and messages, and who is present."""
