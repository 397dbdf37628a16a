"""Incoming hooks and outgoing webhooks."""
