"""Build the parts of a server: store, services, tools, the loop, the engine."""
