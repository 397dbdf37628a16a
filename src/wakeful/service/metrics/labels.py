"""Label values with a bound: names that users and models choose must not make series without end."""

OTHER = "other"


class BoundedNames:
    """Passes the first names on, and calls all later ones `other`."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._names: set[str] = set()

    def __call__(self, name: str | None) -> str:
        if not name:
            return "none"
        if name in self._names:
            return name
        if len(self._names) >= self._most:
            return OTHER
        self._names.add(name)
        return name
