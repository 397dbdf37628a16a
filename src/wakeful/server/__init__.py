"""Doors: REST, socket and page, each a thin caller of one service."""
