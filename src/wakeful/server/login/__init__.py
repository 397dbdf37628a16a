"""Logging in: links, tickets, failed attempts, the login page."""
