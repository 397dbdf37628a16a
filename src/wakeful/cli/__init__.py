"""Shared by all commands: the list of commands, the server to talk to, arguments, output, and the chat."""
