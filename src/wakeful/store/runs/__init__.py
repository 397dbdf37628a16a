"""Rows of runs, their approvals and usage."""
