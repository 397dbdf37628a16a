"""Find the level of confinement that works on this machine, by trying."""

import logging
import subprocess
import sys
import tempfile
from functools import cache
from typing import Literal

from wakeful.domain.agents.confinement import Confinement
from wakeful.tools.confinement.guard import guarded
from wakeful.tools.confinement.rules import find_bubblewrap, make_rules

log = logging.getLogger(__name__)

_SECONDS = 20.0
_TRIAL = "echo tried > file && chmod 600 file"


@cache
def find_confinement() -> Confinement:
    """Try the levels, the strongest first, with a program that does nothing. Takes up to half a second, once."""
    problems: list[str] = []
    levels: tuple[Literal["bubblewrap", "landlock"], ...] = ("bubblewrap", "landlock")
    for level in levels:
        problem = try_level(level)
        if problem is None:
            return Confinement(level=level, problems=tuple(problems))
        problems.append(f"{level}: {problem}")
    return Confinement(level="none", problems=tuple(problems))


def try_level(level: Literal["bubblewrap", "landlock"]) -> str | None:
    """Return why a level does not work here, or None if it does."""
    if sys.platform != "linux":
        return "needs Linux"
    if level == "bubblewrap" and find_bubblewrap() is None:
        return "not installed"
    with tempfile.TemporaryDirectory(prefix="wakeful-try-") as folder:
        try:
            tried = subprocess.run(
                guarded("/bin/sh", "-c", _TRIAL, rules=make_rules(level, write=[folder])),
                cwd=folder,
                env={},
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=_SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return f"no answer within {_SECONDS:g} seconds"
    said = tried.stderr.decode(errors="replace").strip().splitlines()
    return None if tried.returncode == 0 else said[-1][:300] if said else f"exit code {tried.returncode}"


def log_confinement(found: Confinement, *, is_shell_unconfined: bool) -> None:
    """Log the level at start."""
    fields = {"level": found.level, "problems": "; ".join(found.problems)}
    if found.level == "none":
        log.warning("programs cannot be confined on this machine", extra=fields)
    else:
        log.info("programs are confined", extra=fields)
    if is_shell_unconfined:
        log.warning("shell commands run unconfined", extra={"setting": "shell_unconfined"})
