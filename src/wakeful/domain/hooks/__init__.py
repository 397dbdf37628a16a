"""Rules of hooks, which other systems start work with, and of webhooks, which send events to other systems."""
