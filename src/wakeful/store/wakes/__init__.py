"""Rows of wakes."""
