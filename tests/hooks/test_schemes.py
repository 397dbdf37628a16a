"""Proofs of senders: published vectors, and everything that must not pass."""

import base64
from datetime import UTC, datetime, timedelta

import pytest

from wakeful.hooks import schemes
from wakeful.hooks.schemes import BadSecret, Unproven

AT = datetime.fromtimestamp(1614265330, UTC)

# GitHub: from its documentation. Standard Webhooks: from its specification. Stripe: made with `openssl dgst -hmac`.
GITHUB = (
    "github",
    {"x-hub-signature-256": "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"},
    b"Hello, World!",
    "It's a Secret to Everybody",
)
STANDARD = (
    "standard",
    {
        "webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
        "webhook-timestamp": "1614265330",
        "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
    },
    b'{"test": 2432232314}',
    "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
)
STRIPE_SIGNED = "c3f4c1197d6c4d1c6eb3dc01097684e115a43a38a6baf5df5ca6261f13c3ed5d"
STRIPE = (
    "stripe",
    {"stripe-signature": f"t=1614265330,v1={STRIPE_SIGNED},v0=old"},
    b'{"id":"evt_1","type":"invoice.paid"}',
    "whsec_test_secret_of_stripe",
)
GITLAB = ("gitlab", {"x-gitlab-token": "a-token-of-gitlab"}, b"{}", "a-token-of-gitlab")
BEARER = ("bearer", {"authorization": "Bearer a-token-of-someone"}, b"", "a-token-of-someone")

ALL = pytest.mark.parametrize("vector", [GITHUB, STANDARD, STRIPE, GITLAB, BEARER], ids=lambda each: each[0])
SIGNED = pytest.mark.parametrize("vector", [GITHUB, STANDARD, STRIPE], ids=lambda each: each[0])
TIMED = pytest.mark.parametrize("vector", [STANDARD, STRIPE], ids=lambda each: each[0])


def refusal(scheme, headers, body, secrets, now=AT):
    with pytest.raises(Unproven) as refused:
        schemes.check(scheme, headers, body, secrets, now)
    return refused.value.why


@ALL
def test_a_vector_is_accepted(vector):
    scheme, headers, body, secret = vector
    schemes.check(scheme, headers, body, [secret], AT)


@ALL
def test_it_is_refused_with_another_secret_and_without_the_header(vector):
    scheme, headers, body, secret = vector
    other = schemes.make_secret(scheme)
    assert refusal(scheme, headers, body, [other]) == "wrong"
    assert refusal(scheme, {}, body, [secret]) == "missing"
    assert refusal(scheme, headers, body, []) == "wrong"


@ALL
def test_the_secret_before_a_rotation_counts_as_long_as_it_is_given(vector):
    scheme, headers, body, secret = vector
    schemes.check(scheme, headers, body, [schemes.make_secret(scheme), secret], AT)


@SIGNED
@pytest.mark.parametrize(
    "change",
    [
        lambda body: body + b"\n",
        lambda body: b"\xef\xbb\xbf" + body,
        lambda body: body.decode().encode("utf-16"),
        lambda body: body.replace(b"t", b"\\u0074").replace(b"o", b"\\u006f"),
    ],
    ids=["a line break", "a byte order mark", "UTF-16", "escapes"],
)
def test_a_body_that_was_encoded_again_is_refused(vector, change):
    scheme, headers, body, secret = vector
    assert refusal(scheme, headers, change(body), [secret]) == "wrong"


@TIMED
@pytest.mark.parametrize(("off", "is_accepted"), [(299, True), (-299, True), (301, False), (-301, False)])
def test_a_clock_may_differ_by_five_minutes(vector, off, is_accepted):
    scheme, headers, body, secret = vector
    now = AT + timedelta(seconds=off)
    if is_accepted:
        schemes.check(scheme, headers, body, [secret], now)
    else:
        assert refusal(scheme, headers, body, [secret], now) == "stale"


@TIMED
def test_a_timestamp_cannot_be_replaced(vector):
    scheme, headers, body, secret = vector
    later = {name: value.replace("1614265330", "1614269999") for name, value in headers.items()}
    assert refusal(scheme, later, body, [secret], AT + timedelta(seconds=4669)) == "wrong"


@pytest.mark.parametrize(
    "signature",
    [
        "",
        "t=1",
        "v1=00",
        "t=1,t=2,v1=00",
        "t=-1,v1=00",
        "t=1614265330",
        "t=٣,v1=00",
        "t=" + "9" * 400 + ",v1=00",
        ",,=,",
    ],
)
def test_a_malformed_stripe_signature_is_refused(signature):
    assert refusal("stripe", {"stripe-signature": signature}, b"{}", [STRIPE[3]]) in ("missing", "malformed")


@pytest.mark.parametrize("signature", ["sha1=00", "757107", "sha256=", "sha256", "é=é"])
def test_a_malformed_github_signature_is_refused(signature):
    assert refusal("github", {"x-hub-signature-256": signature}, b"{}", ["x" * 20]) == "malformed"


def test_a_header_in_latin_1_is_compared_without_a_fault():
    assert refusal("bearer", {"authorization": "Bearer \xe9\xff"}, b"", ["x" * 20]) == "wrong"
    assert refusal("gitlab", {"x-gitlab-token": "\xe9"}, b"", ["x" * 20]) == "wrong"


def test_several_signatures_are_tried_while_a_sender_rotates():
    _, headers, body, secret = STRIPE
    both = {"stripe-signature": f"t=1614265330,v1={'0' * 64},v1={STRIPE_SIGNED}"}
    schemes.check("stripe", both, body, [secret], AT)
    _, headers, body, secret = STANDARD
    two = headers | {"webhook-signature": f"v1,AAAA v1a,ignored {headers['webhook-signature']}"}
    schemes.check("standard", two, body, [secret], AT)


@pytest.mark.parametrize("scheme", list(schemes.SENDERS))
def test_what_we_sign_is_accepted(scheme):
    secret = schemes.make_secret(scheme)
    assert schemes.check_secret(scheme, f" {secret}\n") == secret
    headers = schemes.sign(scheme, secret, "id-1", "test", AT, b"{}")
    schemes.check(scheme, headers, b"{}", [secret], AT)


@pytest.mark.parametrize("secret", ["short", "x" * 201, "has a blank in it, which is wrong", "é" * 30])
def test_an_unfit_secret_is_refused_without_being_named(secret):
    with pytest.raises(BadSecret) as refused:
        schemes.check_secret("github", secret)
    assert secret not in refused.value.message


@pytest.mark.parametrize(
    "secret", ["a" * 40, "whsec_not base64!!!!!!!!", "whsec_" + base64.b64encode(b"x" * 8).decode()]
)
def test_a_secret_of_standard_webhooks_has_its_form(secret):
    with pytest.raises(BadSecret):
        schemes.check_secret("standard", secret)
