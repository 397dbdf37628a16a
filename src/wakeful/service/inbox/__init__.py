"""Notices, the channels they go out through, and the feed of each user."""
