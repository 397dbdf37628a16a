"""The data directory: its files, its lock, earlier versions, and moving to PostgreSQL."""
