"""Routes for sessions."""
