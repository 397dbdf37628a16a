"""Changes to an agent's database: the changelog, undo, snapshots."""
