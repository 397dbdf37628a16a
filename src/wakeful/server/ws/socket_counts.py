"""The limit of open sockets per token, so that one client cannot use up all file descriptors."""

from collections import Counter
from collections.abc import Generator
from contextlib import contextmanager

from wakeful.domain.people.accounts import TooManySockets


class SocketCounts:
    """The number of open sockets of each token."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._open: Counter[str] = Counter()

    def check(self, token_id: str) -> None:
        """Raise TooManySockets if a token has reached the limit."""
        if self._open[token_id] >= self._most:
            raise TooManySockets(self._most)

    @contextmanager
    def counted(self, token_id: str) -> Generator[None]:
        """Count a socket inside the block."""
        self._open[token_id] += 1
        try:
            yield
        finally:
            self._open[token_id] -= 1
            if not self._open[token_id]:
                del self._open[token_id]
