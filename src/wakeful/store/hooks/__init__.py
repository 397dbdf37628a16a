"""Hooks and webhooks in the store."""
