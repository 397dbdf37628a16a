"""Tools that a model can call."""
