"""Models: providers by name, models that the owner adds, their limits and abilities."""
