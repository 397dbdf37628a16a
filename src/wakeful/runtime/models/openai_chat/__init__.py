"""A client for OpenAI-compatible chat completions."""
