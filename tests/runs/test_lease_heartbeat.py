"""The thread that renews leases survives every error in it."""

import asyncio
import threading
from datetime import timedelta

from wakeful.runs.claims import Claims
from wakeful.runs.lease_heartbeat import LeaseHeartbeat


class BadConnection:
    async def close(self):
        raise LookupError("It is gone already.")


class UnluckyClaims(Claims):
    """Renews a lease after two faults that nobody thought of."""

    def __init__(self):
        self._lease = timedelta(seconds=0.03)
        self.tries = 0

    async def open_heartbeat(self):
        return BadConnection()

    async def renew(self, connection):
        self.tries += 1
        if self.tries < 3:
            raise LookupError("Who would have thought of that?")
        return {("run", 1)}


async def test_a_fault_that_nobody_thought_of_costs_one_beat(caplog):
    heard, told = threading.Event(), []
    claims = UnluckyClaims()

    def note(_began, ours):
        told.append(ours)
        heard.set()

    heartbeat = LeaseHeartbeat(claims, note)
    heartbeat.start()
    try:
        await asyncio.to_thread(heard.wait, 10)
    finally:
        await heartbeat.stop()
    assert told[0] == {("run", 1)}
    assert [record.message for record in caplog.records] == ["leases not renewed"] * 2
