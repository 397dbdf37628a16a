"""Routes for models."""
