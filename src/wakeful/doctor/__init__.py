"""`wakeful doctor`: checks of everything that a server needs."""
