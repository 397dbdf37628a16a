"""Agents: their settings, skills and instruction files, and the tools for their files."""
