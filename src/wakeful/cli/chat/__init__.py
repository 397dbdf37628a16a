"""`wakeful chat` and `wakeful ask`."""
