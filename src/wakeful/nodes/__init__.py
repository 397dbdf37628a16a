"""The nodes that share a store."""
