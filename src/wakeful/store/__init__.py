"""Our tables: the only room with SQL for them."""
