"""Push messages: encrypted for the browser, signed with one key, limited, and to nobody whose login has ended."""

import asyncio
import json
import logging
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import pytest

from harness import DAY, HOUR, MINUTE, NOON, Harness, send_due
from network.push_service import Browser, PushService, from_base64url
from wakeful.config.settings import Settings
from wakeful.core import ids
from wakeful.core.outgoing import PrivateAddress
from wakeful.core.types import Notice, Run, Token, User
from wakeful.datadir.device_key import rotate_device_key
from wakeful.nodes.service import check_shared_key
from wakeful.notices.texts import MAX_BODY, MAX_TITLE
from wakeful.outgoing import rules as outlet_rules
from wakeful.outgoing import web_push as push_keys
from wakeful.outgoing.notify import Notify
from wakeful.outgoing.rules import BadSubscription, PushKeyUnreadable, TooManyBrowsers
from wakeful.outgoing.tools import notify_tools
from wakeful.store.notices import NoSuchBrowser
from wakeful.toolbox.registry import ToolContext, ToolDeps, Tools

pytestmark = pytest.mark.both_stores

ON_SQLITE = pytest.mark.parametrize("backend_settings", ["sqlite"], indirect=True)  # where the store plays no part

# RFC 8291, appendix A.
EXAMPLE = (
    "DGv6ra1nlYgDCS1FRnbzlwAAEABBBP4z9KsN6nGRTbVYI_c7VJSPQTBtkgcy27mlmlMoZIIgDll6e3vCYLocInmYWAmS6TlzAC8wEqKK6PBru3jl7A_y"
    "l95bQpu6cVPTpK4Mqgkf1CXztLVBSt2Ks3oZwbuwXPXLWyouBWLVWGNWQexSgSxsj_Qulcy4a-fN"
)


@pytest.fixture
async def service(tmp_path, monkeypatch):
    async with PushService(tmp_path) as service:
        monkeypatch.setenv("SSL_CERT_FILE", str(service.certificate))
        yield service


@pytest.fixture
async def harness(backend_settings):
    harness = Harness(backend_settings | {"fetch_private_hosts": ["localhost"]})
    async with harness.node.opened():
        await harness.settle_in()
        yield harness


@pytest.fixture
def push(harness):
    return harness.node.services.push


@pytest.fixture
async def login(harness):
    return await log_in(harness, harness.user.id)


async def log_in(harness, user_id, name="login") -> str:
    token = Token(id=name, user_id=user_id, name="Browser", kind="browser", scope="admin", digest=name, created_at=NOON)
    await harness.node.store.write(lambda tx: tx.accounts.add_token(token))
    return token.id


async def subscribe(harness, service, login, name="one", browser=None, user_id=None, contact=None):
    browser = browser or Browser()
    offered = outlet_rules.read_offer(service.endpoint(name), **browser.keys)
    made = await harness.node.services.push.subscribe(user_id or harness.user.id, login, "Firefox", offered, contact)
    return made, browser


async def offer(push, harness, login, endpoint, keys):
    return await push.subscribe(harness.user.id, login, "Firefox", outlet_rules.read_offer(endpoint, **keys), None)


def notice(harness, **changes) -> Notice:
    made = Notice(
        id="notice-1",
        user_id=harness.user.id,
        agent_id=harness.agent.id,
        code="brake",
        title="The brake is on",
        body="It waits.",
        once_key="once",
        created_at=harness.clock.now(),
    )
    return replace(made, **changes)


async def ask_for_approval(harness) -> Run:
    """Have a run that a person started ask before it writes a file."""
    session = await harness.session()
    run = await harness.node.runs.ask(session.id, harness.user.id, "Write it")
    [claimed] = [each.run for each in await harness.node.engine.runner.claims.claim(1)]
    await harness.node.services.approvals.ask(
        claimed, harness.agent, "call-1", "write_file", {"path": "a.txt", "content": "x"}
    )
    return run


async def announce(harness, added: Notice) -> None:
    await harness.node.store.write(lambda tx: tx.notices.add(added))
    await send_due(harness.node)


async def call(harness, title="Red", body="Three tests fail.", wake_id=None):
    session = await harness.session()
    run = await harness.node.runs.ask(session.id, harness.user.id, "Watch")
    await harness.work()
    services = harness.node.services
    notify = Notify(harness.node.store, harness.clock, services.outbox, services.hub, services.data.views_of)
    agent = replace(harness.agent, toolsets=("notify",))
    context = ToolContext(run=replace(run, wake_id=wake_id), agent=agent, workspace=Path("/nowhere"))
    return await Tools(notify_tools(ToolDeps(notify))).call("notify", {"title": title, "body": body}, context)


# ── What arrives ────────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_tests_own_browser_reads_the_example_of_the_standard():
    secret = int.from_bytes(from_base64url("q1dXpw3UpT5VOmu_cf_v6ih07Aems3njxI-JWgLcM94"), "big")
    browser = Browser(secret, from_base64url("BTBZMqHH6r4Tts7J_aSIgg"))
    assert browser.read(from_base64url(EXAMPLE)) == b"When I grow up, I want to be a watermelon"


async def test_a_call_that_waits_for_approval_reaches_the_browser_once(harness, service, push, login):
    _, browser = await subscribe(harness, service, login)
    run = await ask_for_approval(harness)
    await send_due(harness.node)
    got = await service.next()
    shown = json.loads(browser.read(got.body))
    assert shown["title"] == f"{harness.agent.name} needs your approval"
    assert shown["body"] == f"{harness.agent.name} wants to write “a.txt” (1 byte). Open it to see the whole call."
    assert (shown["session_id"], shown["run_id"]) == (run.session_id, run.id)
    assert got.headers["urgency"] == "high"
    assert service.got == []


async def test_a_notice_reaches_the_browser_encrypted_and_signed(harness, service, push, login):
    _, browser = await subscribe(harness, service, login, contact="https://wakeful.example")
    await announce(harness, notice(harness, session_id="s-1"))
    got = await service.next()
    assert json.loads(browser.read(got.body)) == {
        "id": "notice-1",
        "code": "brake",
        "title": "The brake is on",
        "body": "It waits.",
        "agent_id": harness.agent.id,
        "session_id": "s-1",
    }
    assert got.path == "/push/secret-one"
    assert b"brake" not in got.body
    assert (got.headers["content-encoding"], got.headers["ttl"], got.headers["urgency"]) == (
        "aes128gcm",
        "86400",
        "normal",
    )
    claims = got.claims(service.origin)
    assert claims["sub"] == "https://wakeful.example"
    assert NOON < datetime.fromtimestamp(claims["exp"], NOON.tzinfo) <= NOON + DAY
    assert got.signed_with == (await push.offer()).public_key
    [told] = await push.of_user(harness.user.id)
    assert (told.last_sent_at, told.last_error) == (NOON, None)


@ON_SQLITE
async def test_a_request_for_approval_is_urgent(harness, service, login):
    await subscribe(harness, service, login)
    await announce(harness, notice(harness, code="needs_approval"))
    assert (await service.next()).headers["urgency"] == "high"


@ON_SQLITE
async def test_what_a_model_wrote_is_shown_as_its_agents_words_and_the_answer_claims_no_more_than_is_known(
    harness, service, login
):
    _, browser = await subscribe(harness, service, login)
    answer = await call(harness, title="Wakeful: log in again")
    assert (await service.read(browser))["title"] == "Agent writes: Wakeful: log in again"
    assert "push 'Firefox': handed to the push service." in answer.text
    assert "Whether it was read is not known." in answer.text
    assert answer.metadata["channels"] == {"inbox": "saved", "browser": "0 open", "push Firefox": "handed_over"}


@ON_SQLITE
@pytest.mark.parametrize("character", ["x", "\U0001f331", "\x01", "é", '"'])
async def test_the_longest_texts_fit_and_are_cut_with_an_ellipsis(harness, service, login, character):
    _, browser = await subscribe(harness, service, login)
    await announce(
        harness,
        notice(harness, title=character * MAX_TITLE, body=character * MAX_BODY, view_ref=character * 64, code="notify"),
    )
    got = await service.next()
    assert len(got.body) <= 4096
    message = json.loads(browser.read(got.body))
    assert (len(message["title"]), len(message["body"])) == (outlet_rules.MAX_TITLE, outlet_rules.MAX_BODY)
    assert message["title"].endswith("…")
    assert message["body"] == character * (outlet_rules.MAX_BODY - 1) + "…"


@ON_SQLITE
async def test_in_the_run_of_a_muted_wake_nothing_is_sent(harness, service, login):
    await subscribe(harness, service, login)
    wake = await harness.book()
    await harness.node.wakes.mute(wake.id, harness.user.id, True)
    assert "muted" in (await call(harness, wake_id=wake.id)).text
    assert service.got == []


# ── What the push service answers ───────────────────────────────────────────────────────────────────────────────────


@ON_SQLITE
@pytest.mark.parametrize("status", [404, 410])
async def test_a_browser_whose_subscription_has_ended_is_removed(harness, service, push, login, status):
    await subscribe(harness, service, login)
    service.script = [(status, {})]
    answer = await call(harness)
    assert answer.metadata["channels"]["push Firefox"] == "gone"
    assert "push 'Firefox': not sent (the browser has ended its subscription" in answer.text
    assert await push.of_user(harness.user.id) == []
    assert len(service.got) == 1


@ON_SQLITE
async def test_a_push_service_that_asks_to_wait_is_left_alone_until_then(harness, service, push, login):
    made, _ = await subscribe(harness, service, login)
    service.script = [(429, {"Retry-After": "3600"})]
    outcomes = [(await push.test(made.id, harness.user.id)).outcome for _ in range(2)]
    assert outcomes == ["rate_limited", "rate_limited"]
    assert len(service.got) == 1
    [told] = await push.of_user(harness.user.id)
    assert "2026-03-02 13:00" in (told.last_error or "")
    harness.clock.set(NOON + HOUR)
    assert (await push.test(made.id, harness.user.id)).outcome == "handed_over"


@ON_SQLITE
async def test_a_short_wait_that_the_push_service_asks_for_is_kept_at_once(harness, service, push, login):
    made, _ = await subscribe(harness, service, login)
    service.script = [(429, {"Retry-After": "1"})]
    assert (await push.test(made.id, harness.user.id)).outcome == "handed_over"
    assert len(service.got) == 2


@ON_SQLITE
async def test_an_error_of_the_push_service_is_tried_again(harness, service, push, login, caplog):
    made, _ = await subscribe(harness, service, login)
    service.script = [(500, {})]
    assert (await push.test(made.id, harness.user.id)).outcome == "handed_over"
    service.got.clear()
    service.script = [(502, {})] * 3
    with caplog.at_level(logging.WARNING):
        delivery = await push.test(made.id, harness.user.id)
    assert (delivery.outcome, delivery.reason) == ("failed", "the push service answered 502")
    assert len(service.got) == 3
    [told] = await push.of_user(harness.user.id)
    assert told.last_error == "the push service answered 502"
    assert "push message not sent" in caplog.messages
    assert "secret" not in caplog.text


@ON_SQLITE
async def test_a_refusal_is_not_tried_again(harness, service, push, login):
    made, _ = await subscribe(harness, service, login)
    service.script = [(403, {})]
    assert (await push.test(made.id, harness.user.id)).reason == "the push service answered 403"
    assert len(service.got) == 1


@ON_SQLITE
async def test_one_that_takes_too_long_is_said_to_have_timed_out(harness, service, push, login):
    await subscribe(harness, service, login)
    service.is_silent = True
    harness.node.services.outbox.kinds["push"].seconds = 3
    answer = await call(harness)
    assert answer.metadata["channels"]["push Firefox"] == "timed_out"
    assert "no answer within 3 s; it may or may not have arrived" in answer.text


@ON_SQLITE
async def test_a_redirect_is_not_followed(harness, service, push, login):
    made, _ = await subscribe(harness, service, login)
    service.script = [(307, {"Location": service.endpoint("elsewhere")})]
    delivery = await push.test(made.id, harness.user.id)
    assert delivery.outcome == "failed"
    assert "a redirect, which is not followed" in (delivery.reason or "")
    assert [each.path for each in service.got] == ["/push/secret-one"]


@ON_SQLITE
async def test_a_name_that_has_become_private_since_is_not_sent_to(harness, service, push, login):
    made, _ = await subscribe(harness, service, login)
    harness.node.services.outbox.sender.private_hosts = []
    delivery = await push.test(made.id, harness.user.id)
    assert delivery.outcome == "failed"
    assert "is not on the public internet" in (delivery.reason or "")
    assert service.got == []


@ON_SQLITE
async def test_a_certificate_that_nobody_trusts_is_refused(harness, service, push, login, monkeypatch):
    made, _ = await subscribe(harness, service, login)
    monkeypatch.delenv("SSL_CERT_FILE")
    delivery = await push.test(made.id, harness.user.id)
    assert "cannot be reached (SSLCertVerificationError)" in (delivery.reason or "")
    assert service.got == []


@ON_SQLITE
async def test_so_many_an_hour_to_one_browser_and_then_again(harness, service, push, login):
    made, _ = await subscribe(harness, service, login)
    full = replace(made, hour_from=NOON - HOUR + MINUTE, hour_count=outlet_rules.PER_HOUR - 1)
    await harness.node.store.write(lambda tx: tx.push.save(full))
    outcomes = [(await push.test(made.id, harness.user.id)).outcome for _ in range(2)]
    assert outcomes == ["handed_over", "rate_limited"]
    harness.clock.set(NOON + MINUTE)
    assert (await push.test(made.id, harness.user.id)).outcome == "handed_over"


# ── Whose browsers ──────────────────────────────────────────────────────────────────────────────────────────────────


async def test_the_eleventh_is_refused_also_when_two_come_at_once(harness, service, push, login):
    for number in range(outlet_rules.MAX_BROWSERS - 1):
        await subscribe(harness, service, login, str(number))
    both = await asyncio.gather(
        *[subscribe(harness, service, login, name) for name in ("tenth", "eleventh")], return_exceptions=True
    )
    assert sorted(isinstance(each, TooManyBrowsers) for each in both) == [False, True]
    names = [each.name for each in await push.of_user(harness.user.id)]
    assert sorted(names) == sorted({"Firefox", *(f"Firefox {number}" for number in range(2, 11))})
    await subscribe(harness, service, login, "0")  # to renew one is always possible
    await push.delete((await push.of_user(harness.user.id))[0].id, harness.user.id)
    await subscribe(harness, service, login, "another")


async def test_a_browser_that_subscribes_again_is_one_with_its_new_keys(harness, service, push, login):
    first, _ = await subscribe(harness, service, login)
    second, browser = await subscribe(harness, service, await log_in(harness, harness.user.id, "later"))
    assert (second.id, second.token_id) == (first.id, "later")
    assert len(await push.of_user(harness.user.id)) == 1
    await push.test(first.id, harness.user.id)
    assert (await service.read(browser))["title"] == "A test from Wakeful"


async def test_nothing_is_sent_to_a_browser_whose_login_was_revoked_or_has_expired(harness, service, push, login):
    made, _ = await subscribe(harness, service, login)
    await harness.node.store.write(lambda tx: tx.accounts.revoke_token(login, harness.user.id, NOON))
    await announce(harness, notice(harness))
    assert await push.of_user(harness.user.id) == []
    with pytest.raises(NoSuchBrowser):
        await push.test(made.id, harness.user.id)
    short = await log_in(harness, harness.user.id, "short")
    await subscribe(harness, service, short)
    assert len(await push.of_user(harness.user.id)) == 1
    await harness.sql(f"UPDATE tokens SET expires_at = 1 WHERE id = '{short}'")
    await announce(harness, notice(harness, id="notice-2", once_key="twice"))
    assert service.got == []
    await harness.node.engine.upkeep.forget()
    await harness.sql(f"UPDATE tokens SET expires_at = NULL WHERE id = '{short}'")
    assert await push.of_user(harness.user.id) == []  # it was deleted, not only left out


async def test_a_browser_in_which_someone_else_subscribes_no_longer_gets_the_formers_notices(
    harness, service, push, login
):
    await subscribe(harness, service, login)
    other = User(id=ids.new_id(), name="Bob", role="member", created_at=NOON)
    await harness.node.agents.add_user(other)
    await subscribe(harness, service, await log_in(harness, other.id, "bobs"), user_id=other.id)
    assert await push.of_user(harness.user.id) == []
    assert len(await push.of_user(other.id)) == 1
    with pytest.raises(NoSuchBrowser):
        await push.delete((await push.of_user(other.id))[0].id, harness.user.id)
    await announce(harness, notice(harness))
    assert service.got == []


@ON_SQLITE
@pytest.mark.parametrize(
    ("endpoint", "error"),
    [
        ("http://push.example/x", BadSubscription),
        ("ftp://push.example/x", BadSubscription),
        ("https://user:word@push.example/x", BadSubscription),
        ("https:///x", BadSubscription),
        ("https://push.example:port/x", BadSubscription),
        ("https://push.example/with blank", BadSubscription),
        (f"https://push.example/{'x' * 2000}", BadSubscription),
        ("https://127.0.0.1/x", PrivateAddress),
        ("https://127.1/x", PrivateAddress),
        ("https://2130706433/x", PrivateAddress),
        ("https://[::1]/x", PrivateAddress),
        ("https://[::ffff:10.0.0.1]/x", PrivateAddress),
        ("https://169.254.169.254/x", PrivateAddress),
    ],
)
async def test_endpoints_that_are_not_public_https_are_refused(harness, push, login, endpoint, error):
    with pytest.raises(error) as caught:
        await offer(push, harness, login, endpoint, Browser().keys)
    assert "/x" not in caught.value.message
    assert await push.of_user(harness.user.id) == []


@ON_SQLITE
@pytest.mark.parametrize(
    "changed",
    [{"p256dh": "AAAA"}, {"p256dh": "B" + "A" * 86}, {"p256dh": "no base64!"}, {"auth": "AAAA"}, {"auth": "é"}],
)
async def test_keys_that_no_browser_makes_are_refused(push, harness, login, changed):
    with pytest.raises(BadSubscription):
        await offer(push, harness, login, "https://push.example/x", Browser().keys | changed)


# ── The key ─────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_every_node_signs_with_the_one_key_which_is_encrypted_in_the_store(harness, push):
    stored = await harness.node.store.read(lambda tx: tx.push.key())
    assert stored is not None
    assert stored.public_key == (await push.offer()).public_key
    again = harness.another_node() if harness.node.store.is_shared else None
    if again is not None:
        async with again.opened():
            assert (await again.services.push.offer()).public_key == stored.public_key
    device_key = push._device_key  # noqa: SLF001
    private = push_keys.decrypt_key(device_key, stored)
    assert private.private_numbers().private_value.to_bytes(32, "big").hex() not in stored.encrypted_key
    with pytest.raises(PushKeyUnreadable):
        push_keys.decrypt_key(bytes(32), stored)


async def test_nodes_that_make_it_at_once_end_up_with_one(harness, push):
    await harness.sql("DELETE FROM push_key")
    offers = await asyncio.gather(*[push.offer() for _ in range(4)])
    assert len({each.public_key for each in offers}) == 1


@ON_SQLITE
async def test_with_another_device_key_the_server_starts_and_says_that_push_does_not_work(
    harness, service, push, login, caplog
):
    await subscribe(harness, service, login)
    for each in (push, harness.node.services.outbox.kinds["push"]):
        each._device_key = bytes(32)  # noqa: SLF001
    with caplog.at_level(logging.WARNING):
        await check_shared_key(harness.node.store, push, Path("nowhere"), Path("nowhere"))
    assert "push messages cannot be signed" in caplog.messages
    answer = await call(harness)
    assert "push 'Firefox': failed (Push messages cannot be signed" in answer.text
    offer = await push.offer()
    assert offer.public_key is None
    assert "WAKEFUL_DEVICE_KEY" in (offer.problem or "")


@ON_SQLITE
async def test_a_new_device_key_opens_it_too(backend_settings):
    before = Harness(backend_settings)
    async with before.node.opened():
        public_key = (await before.node.services.push.offer()).public_key
    await asyncio.to_thread(rotate_device_key, Settings.model_validate(backend_settings))
    after = Harness(backend_settings)
    async with after.node.opened():
        assert (await after.node.services.push.offer()).public_key == public_key
