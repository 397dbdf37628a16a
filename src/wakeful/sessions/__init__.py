"""Sessions: messages, uploads, presence, search."""
