"""Claiming, ending, stopping and listing runs."""
