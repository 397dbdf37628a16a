"""Lists of models: from their providers, and from servers on this machine."""
