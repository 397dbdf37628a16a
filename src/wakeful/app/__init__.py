"""Builds and starts a node: the only package that imports everything."""
