"""Checks of this machine for `wakeful doctor`. They change nothing, and work with the server running and without."""
