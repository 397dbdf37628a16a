"""Outgoing webhooks: events for other systems."""
