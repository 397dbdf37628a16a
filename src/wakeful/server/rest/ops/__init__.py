"""Routes for operators: health, storage, about."""
