"""Tables, rows, views and queries of an agent's database."""
