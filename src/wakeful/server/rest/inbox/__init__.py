"""Routes for notifications and channels."""
