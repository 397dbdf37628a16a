"""Verbs: every write anyone can ask for, one module per noun."""
