"""Ollama's own chat API, which, unlike its compatible one, lets us set the context window."""
