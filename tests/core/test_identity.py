from datetime import UTC, datetime, timedelta, timezone

import pytest

from wakeful.core import identity
from wakeful.core.identity import SCOPES, Identity
from wakeful.core.types import User

NOON = datetime(2026, 3, 2, 12, 0, tzinfo=UTC)
ADA = User(id="ada", name="Ada", role="owner", created_at=NOON)
BOB = User(id="bob", name="Bob", role="user", created_at=NOON)


def caller(user=ADA, scope="admin"):
    return Identity(user=user, scope=scope, token_id="token")


@pytest.mark.parametrize("held", SCOPES)
@pytest.mark.parametrize("needed", SCOPES)
def test_each_scope_includes_the_ones_before_it(held, needed):
    order = ["read", "chat", "schedule", "admin"]
    assert identity.includes(held, needed) == (order.index(held) >= order.index(needed))


def test_a_scope_that_is_too_small_is_named_beside_the_one_that_is_needed():
    with pytest.raises(identity.ScopeTooSmall, match="'schedule'; yours has 'chat'"):
        identity.check_scope(caller(scope="chat"), "schedule")


def test_a_token_cannot_make_one_that_can_do_more():
    identity.check_grant(caller(scope="chat"), "chat")
    with pytest.raises(identity.ScopeTooLarge):
        identity.check_grant(caller(scope="chat"), "schedule")


@pytest.mark.parametrize(
    ("who", "error"),
    [
        pytest.param(caller(BOB), identity.OwnersOnly, id="a user with the scope admin"),
        pytest.param(caller(ADA, "schedule"), identity.ScopeTooSmall, id="an owner without it"),
    ],
)
def test_managing_others_needs_the_role_and_the_scope(who, error):
    with pytest.raises(error):
        identity.check_manages(who, "somebody else")


def test_everyone_with_the_scope_admin_manages_themselves():
    identity.check_manages(caller(BOB), BOB.id)


def test_the_last_owner_stays_an_owner():
    with pytest.raises(identity.LastOwner):
        identity.change_user(ADA, name=None, role="user", owners=[ADA.id])


def test_an_owner_beside_another_may_become_a_user():
    assert identity.change_user(ADA, name=None, role="user", owners=[ADA.id, "eve"]).role == "user"


def test_the_last_owner_may_be_renamed():
    renamed = identity.change_user(ADA, name="Countess", role="owner", owners=[ADA.id])
    assert (renamed.name, renamed.role) == ("Countess", "owner")


def test_an_expiry_is_kept_in_utc():
    given = (NOON + timedelta(hours=1)).astimezone(timezone(timedelta(hours=5)))
    assert identity.read_expiry(given, NOON).isoformat() == "2026-03-02T13:00:00+00:00"


@pytest.mark.parametrize(
    ("expires_at", "error"),
    [
        pytest.param(NOON, identity.ExpiresInThePast, id="now"),
        pytest.param(
            datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=23))), identity.ExpiresInThePast, id="before the calendar"
        ),
        pytest.param(
            datetime(9999, 12, 31, 23, tzinfo=timezone(-timedelta(hours=23))), identity.ExpiresTooLate, id="after it"
        ),
    ],
)
def test_an_expiry_that_cannot_be_is_refused(expires_at, error):
    with pytest.raises(error):
        identity.read_expiry(expires_at, NOON)
