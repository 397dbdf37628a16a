"""Which server the commands talk to: options, environment, contexts, and the server of this machine."""
