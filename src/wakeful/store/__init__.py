"""The server's tables, and all SQL for them."""
