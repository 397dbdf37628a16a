"""Routes for hooks and webhooks."""
