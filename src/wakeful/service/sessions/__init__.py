"""Sessions, their messages, frames and files."""
