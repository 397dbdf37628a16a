"""The engine of agents' own databases: worker processes, encrypted files, guarded SQL, changelog and snapshots."""
