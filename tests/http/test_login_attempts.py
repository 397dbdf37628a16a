from datetime import UTC, datetime, timedelta

import pytest

from wakeful.core.clock import ManualClock
from wakeful.core.identity import TooManyTries
from wakeful.http.tries import MAX_ADDRESSES, MAX_FROM_ALL, MAX_FROM_ONE, Tries

NOON = datetime(2026, 3, 2, 12, 0, tzinfo=UTC)


@pytest.fixture
def clock():
    return ManualClock(NOON)


@pytest.fixture
def tries(clock):
    return Tries(clock)


def be_wrong(tries, client, times=MAX_FROM_ONE):
    for _ in range(times):
        tries.check(client)
        tries.count(client)


def test_an_address_that_was_wrong_too_often_must_wait_and_is_told_how_long(tries, clock):
    be_wrong(tries, "10.0.0.1")
    clock.advance(timedelta(seconds=20))
    with pytest.raises(TooManyTries) as refused:
        tries.check("10.0.0.1")
    assert refused.value.seconds == 40


def test_after_a_minute_it_may_try_again(tries, clock):
    be_wrong(tries, "10.0.0.1")
    clock.advance(timedelta(minutes=1))
    tries.check("10.0.0.1")


def test_loopback_is_no_exception(tries):
    be_wrong(tries, "127.0.0.1")
    with pytest.raises(TooManyTries):
        tries.check("127.0.0.1")


def test_another_address_is_not_made_to_wait(tries):
    be_wrong(tries, "10.0.0.1")
    tries.check("10.0.0.2")


def test_one_ipv6_customer_is_one_address(tries):
    be_wrong(tries, "2001:db8::1")
    with pytest.raises(TooManyTries):
        tries.check("2001:db8::2")
    tries.check("2001:db8:0:1::1")


def test_while_everyone_is_wrong_each_new_address_still_has_one_try(tries):
    for number in range(MAX_FROM_ALL):
        be_wrong(tries, f"10.0.1.{number}", times=1)
    be_wrong(tries, "10.0.2.1", times=1)
    with pytest.raises(TooManyTries):
        tries.check("10.0.2.1")


def test_it_remembers_a_bounded_number_of_addresses(tries, monkeypatch):
    monkeypatch.setattr("wakeful.http.tries.MAX_ADDRESSES", 50)
    for number in range(60):
        tries.count(f"10.1.0.{number}")
    assert len(tries.by_address) == 50 < MAX_ADDRESSES
