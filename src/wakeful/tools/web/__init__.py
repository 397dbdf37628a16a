"""The toolset `web`: fetch a public page and read it as text."""

from wakeful.tools.web.web import make_tools

__all__ = ["make_tools"]
