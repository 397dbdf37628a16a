"""Builds a node from all other rooms, serves it over HTTP, and manages its data directory and device key."""
