"""Parse the data lines of server-sent events, in chunks that may end anywhere."""

MAX_LINE = 32 * 1024 * 1024


class LineTooLong(ValueError):
    """A line exceeds the limit."""


class DataLines:
    """Collects bytes and returns the payload of each finished `data:` line.

    Providers put one JSON object on one line, so a line is an event here; comments and other fields are ignored. Only
    complete lines are returned, so a character that was split between two chunks is complete again.
    """

    def __init__(self, longest: int = MAX_LINE, prefix: bytes = b"data:") -> None:
        self._longest = longest
        self._prefix = prefix  # empty: every line is a payload, as in NDJSON
        self._rest = bytearray()

    def feed(self, chunk: bytes) -> list[bytes]:
        if b"\n" not in chunk:
            self._rest += chunk
            if len(self._rest) > self._longest:
                raise LineTooLong
            return []
        if self._rest:
            chunk = bytes(self._rest) + chunk
            self._rest.clear()
        *lines, rest = chunk.split(b"\n")
        if rest:
            self._rest += rest
        return [line[len(self._prefix) :].strip() for line in lines if line.startswith(self._prefix)]

    def finish(self) -> list[bytes]:
        """Return the payload of the last line if the stream ended without a line break."""
        rest = bytes(self._rest)
        self._rest.clear()
        return [rest[len(self._prefix) :].strip()] if rest.startswith(self._prefix) else []
