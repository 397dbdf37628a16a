"""`wakeful db …`: an agent's own database."""
