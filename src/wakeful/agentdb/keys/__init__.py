"""Keys: one for each agent's file, wrapped by the key of the device."""
