"""Rows of agents and what belongs to them."""
