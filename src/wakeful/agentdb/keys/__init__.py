"""Keys: one for each agent's file, wrapped with the device key."""
