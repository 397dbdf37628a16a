"""The REST routes, one module per noun. A route parses, calls one service, and shapes the answer."""
