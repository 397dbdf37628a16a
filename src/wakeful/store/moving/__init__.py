"""Copies an embedded store to PostgreSQL, and compares the two row by row."""
