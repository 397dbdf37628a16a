"""Agents, their databases, workspaces and settings."""
