"""Rows of accounts and tokens."""
