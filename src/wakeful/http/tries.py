"""Rate limit for wrong tokens and forged deliveries: an address that sends too many gets 429.

A valid token is always accepted: otherwise anyone at the same address, for instance behind the same proxy, could lock
its owner out. So a token is protected from guessing by its length, not by this limit.
"""

import logging
from collections import OrderedDict, deque
from datetime import timedelta
from ipaddress import IPv6Address, ip_address

from wakeful.core.clock import Clock
from wakeful.core.identity import TooManyTries

log = logging.getLogger(__name__)

WINDOW = timedelta(minutes=1)
MAX_FROM_ONE = 10
MAX_FROM_ALL = 100
MAX_ADDRESSES = 10_000


class Tries:
    """Failed attempts of the last minute: wrong tokens, or wrong signatures."""

    def __init__(self, clock: Clock, of: str = "wrong token") -> None:
        self._clock = clock
        self._of = of
        self.by_address: OrderedDict[str, deque[float]] = OrderedDict()
        self._all: deque[float] = deque(maxlen=MAX_FROM_ALL)

    def of(self, what: str) -> "Tries":
        """Return a limit of its own for something else, by the same clock."""
        return Tries(self._clock, what)

    def check(self, client: str) -> None:
        """Raise TooManyTries if this address must wait."""
        now = self._clock.monotonic()
        mine = self.by_address.get(network_of(client), deque[float]())
        _drop_old(mine, now)
        _drop_old(self._all, now)
        most = 1 if len(self._all) == MAX_FROM_ALL else MAX_FROM_ONE
        if len(mine) >= most:
            raise TooManyTries(WINDOW - timedelta(seconds=now - mine[-most]), self._of)

    def count(self, client: str) -> None:
        """Count a failed attempt."""
        now = self._clock.monotonic()
        address = network_of(client)
        self.by_address.setdefault(address, deque(maxlen=MAX_FROM_ONE)).append(now)
        self.by_address.move_to_end(address)
        _drop_old(self._all, now)
        if len(self._all) < MAX_FROM_ALL:  # limits the lines per minute, from however many addresses
            log.warning(self._of, extra={"client": client})
        self._all.append(now)
        if len(self.by_address) > MAX_ADDRESSES:
            self.by_address.popitem(last=False)


def _drop_old(times: deque[float], now: float) -> None:
    while times and now - times[0] >= WINDOW.total_seconds():
        times.popleft()


def network_of(client: str) -> str:
    """Return the address, or the /64 network of an IPv6 address: one customer has at least that many."""
    try:
        address = ip_address(client)
    except ValueError:
        return client
    return str(int(address) >> 64) if isinstance(address, IPv6Address) and not address.ipv4_mapped else str(address)
