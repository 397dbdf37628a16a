"""Routes for accounts and tokens."""
