"""Accounts, tokens, and the first start."""
