"""Nouns and rules: pure, no input or output, time is always an argument."""
