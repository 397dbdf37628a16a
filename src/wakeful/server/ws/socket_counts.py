"""How many sockets each token has open: a token has a cap, so that one client cannot take every descriptor."""

from collections import Counter
from collections.abc import Generator
from contextlib import contextmanager

from wakeful.domain.people.accounts import TooManySockets


class SocketCounts:
    """Open sockets by the token they were opened with."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._open: Counter[str] = Counter()

    def check(self, token_id: str) -> None:
        """Raise TooManySockets if a token may open no more."""
        if self._open[token_id] >= self._most:
            raise TooManySockets(self._most)

    @contextmanager
    def counted(self, token_id: str) -> Generator[None]:
        """Count a socket as long as the block lasts."""
        self._open[token_id] += 1
        try:
            yield
        finally:
            self._open[token_id] -= 1
            if not self._open[token_id]:
                del self._open[token_id]
