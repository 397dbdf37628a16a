"""Incoming hooks: other systems start work of an agent."""
