"""Limits on what clients send: bodies, JSON, connections, log records."""
