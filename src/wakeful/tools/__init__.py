"""What the model sees: the tools an agent may call."""
