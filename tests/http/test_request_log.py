import logging
from datetime import UTC, datetime, timedelta

import pytest

from wakeful.core.clock import ManualClock
from wakeful.http.request_log import MAX_A_MINUTE, bounded_logs


@pytest.fixture
def clock():
    return ManualClock(datetime(2026, 3, 2, 12, 0, tzinfo=UTC))


def test_one_kind_of_message_is_logged_a_few_times_a_minute_and_then_counted(clock, caplog):
    log = logging.getLogger("uvicorn.error")
    with bounded_logs(clock):
        for number in range(MAX_A_MINUTE + 30):
            log.warning("refused %d", number)
        log.warning("another kind")
        clock.advance(timedelta(minutes=1))
        log.warning("refused %d", 99)
    assert len(caplog.messages) == MAX_A_MINUTE + 2
    assert caplog.messages[-2:] == ["another kind", "refused 99 (30 more like it were left out)"]


def test_many_kinds_are_bounded_too(clock, caplog):
    log = logging.getLogger("asyncio")
    with bounded_logs(clock):
        for number in range(1_000):
            log.warning(f"kind {number}")  # noqa: G004
    assert len(caplog.messages) == 100


def test_nothing_is_left_out_afterwards(clock, caplog):
    with bounded_logs(clock):
        pass
    for _ in range(MAX_A_MINUTE + 1):
        logging.getLogger("uvicorn.error").warning("refused")
    assert len(caplog.messages) == MAX_A_MINUTE + 1
