"""How far this machine can confine the programs that agents start."""

from dataclasses import dataclass
from typing import Literal

Level = Literal["bubblewrap", "landlock", "none"]  # strongest first
ShellStatus = Literal["bubblewrap", "landlock", "unconfined", "refused"]

REMEDY = "install bubblewrap so that `bwrap` works for the server's user, or run Linux 6.12 or later with Landlock"


@dataclass(frozen=True, slots=True, kw_only=True)
class Confinement:
    """The level that was tried on this machine and works."""

    level: Level
    problems: tuple[str, ...] = ()  # why a stronger level does not work here

    def of_shell(self, *, is_unconfined_allowed: bool) -> ShellStatus:
        """Return how commands of the toolset `shell` run."""
        if is_unconfined_allowed:
            return "unconfined"
        return "refused" if self.level == "none" else self.level
