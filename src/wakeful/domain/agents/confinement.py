"""Levels of confinement for the programs that agents start."""

from dataclasses import dataclass
from typing import Literal

Level = Literal["bubblewrap", "landlock", "none"]  # strongest first
Confined = Literal["bubblewrap", "landlock", "unconfined", "refused"]  # how a program is run

REMEDY = "install bubblewrap so that `bwrap` works for the server's user, or run Linux 6.12 or later with Landlock"


@dataclass(frozen=True, slots=True, kw_only=True)
class Confinement:
    """The level that was tried on this machine and works."""

    level: Level
    problems: tuple[str, ...] = ()  # why a stronger level does not work here

    def of(self, *, is_unconfined: bool) -> Confined:
        """Return how a program is run, given whether the owner wants it unconfined."""
        if is_unconfined:
            return "unconfined"
        return "refused" if self.level == "none" else self.level
