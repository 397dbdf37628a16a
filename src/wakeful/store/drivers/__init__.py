"""The two databases of the store: SQLite and PostgreSQL."""
