"""Wakeful: a server for agents that set their own alarm."""
