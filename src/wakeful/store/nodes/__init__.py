"""Nodes in the store."""
