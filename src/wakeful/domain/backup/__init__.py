"""Backups: recipients, and when scheduled ones are due."""
