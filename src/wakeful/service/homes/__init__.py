"""Homes: agents' databases and files in PostgreSQL, and their caches on this node."""
