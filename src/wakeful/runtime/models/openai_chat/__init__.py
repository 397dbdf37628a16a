"""Models with an OpenAI-compatible chat API."""
