"""Frames: sessions live and replayed, and the WebSockets."""
