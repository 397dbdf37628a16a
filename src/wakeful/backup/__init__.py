"""Backups and restores: everything in one encrypted file."""
