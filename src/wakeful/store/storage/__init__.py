"""Sizes of tables, and the deletion of old rows."""
