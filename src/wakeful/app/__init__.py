"""The room that knows all others: how a node is put together, served, and how its device key is kept."""
