"""Pings of monitoring services outside: for wakes, and for the server itself."""
