"""Shared by all routes: authentication, errors, limits, shapes, the files of the page."""
