"""Heartbeat pings in the store."""
