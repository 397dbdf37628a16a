"""Replacing a file in one step. Commands may import it from here, but not from `service`."""

from wakeful.service.durable_files import replace_file

__all__ = ["replace_file"]
