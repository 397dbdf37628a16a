"""Confinement of the programs that agents start: Landlock and seccomp, or bubblewrap and seccomp.

`guard.py` imports the modules here that run before a program is started. Those use plain dicts and few imports, because
every command waits for them: `dataclasses`, `typing` and `pathlib` would double a guard's start.
"""
