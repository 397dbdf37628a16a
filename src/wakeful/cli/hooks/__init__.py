"""Commands for hooks and webhooks."""
