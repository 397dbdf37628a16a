"""`wakeful backup` and `wakeful restore`."""
