"""Backups: one encrypted file with everything, and what is read from one."""
