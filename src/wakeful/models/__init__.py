"""Models: providers, wires, lists, tests, and the demo model."""
