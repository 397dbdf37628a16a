"""`wakeful chat` and `wakeful ask`: talking to an agent."""
