"""The files of agents: workspaces, data directories, and homes on a shared store."""
