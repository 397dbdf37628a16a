"""The agent's own database: one encrypted file each."""
