"""Models: adding, changing and removing them, and their keys."""
