"""Confinement of the programs that agents start, and the shell tool."""
