"""Rows of notices and channels."""
