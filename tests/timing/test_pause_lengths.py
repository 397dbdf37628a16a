"""When a pause ends."""

from datetime import UTC, datetime, timedelta

import pytest

from wakeful.timing.bounds import BadPause, end_of

NOON = datetime(2026, 11, 16, 12, tzinfo=UTC)


def test_a_pause_can_have_any_length():
    assert end_of(None, None, NOON, "UTC", timedelta(minutes=135)) == NOON + timedelta(hours=2, minutes=15)


def test_a_pause_has_one_end():
    with pytest.raises(BadPause, match="Both 'preset' \\('1h'\\) and 'seconds' \\(60\\) are given"):
        end_of(None, "1h", NOON, "UTC", timedelta(minutes=1))
