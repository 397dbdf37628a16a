"""Users, tokens and logins on each store: who is authorized, for how long, and what cannot be deleted."""

import asyncio
from dataclasses import asdict, replace

import pytest
from pydantic import SecretStr

from harness import DAY, HOUR, MINUTE, SECOND, Harness
from wakeful.app.first_start import FIRST_OWNER, TokenFileUnusable, load_token, settle_owner
from wakeful.config.settings import Settings
from wakeful.core import identity as rules
from wakeful.core.identity import Identity, LoginEnded, LoginOutdated, PageSecretMissing
from wakeful.people.service import Accounts, digest_of

pytestmark = pytest.mark.both_stores

# ── People and tokens ───────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def accounts(harness):
    return Accounts(harness.node.store, harness.clock, harness.node.services.departures)


@pytest.fixture
async def ada(harness):
    """The owner, as their token shows them."""
    return await settle_owner(harness.node.store, harness.clock, harness.node.settings, harness.node.services.nodes)


async def come_in(accounts, owner, name="Bob", role="user"):
    """Add a person and let them in with a token of their own."""
    user = await accounts.add_user(owner, name=name, role=role)
    made = await accounts.make_token(owner, name="first", scope="admin", user_id=user.id)
    return await accounts.identify(made.secret)


async def test_a_token_is_known_by_its_secret_and_only_its_digest_is_kept(accounts, ada, harness):
    made = await accounts.make_token(ada, name="script", scope="chat")
    assert made.secret.startswith("wkf_")
    found = await accounts.identify(made.secret)
    assert found == Identity(user=ada.user, scope="chat", token_id=made.token.id, token_name="script")
    assert await accounts.identify(made.secret + "x") is None
    kept = await harness.node.store.read(lambda tx: tx.accounts.token_by_digest(digest_of(made.secret)))
    assert made.secret not in repr(kept)


async def test_two_secrets_are_never_the_same(accounts, ada):
    made = [await accounts.make_token(ada, name="script", scope="read") for _ in range(3)]
    assert len({each.secret for each in made}) == 3
    assert all(len(each.secret) == 47 for each in made)  # 256 bits in base 64, after the prefix


async def test_a_revoked_token_lets_nobody_in_here_at_once(accounts, ada):
    made = await accounts.make_token(ada, name="script", scope="chat")
    await accounts.identify(made.secret)
    await accounts.revoke_token(ada, made.token.id)
    assert await accounts.identify(made.secret) is None
    assert made.token.id not in [token.id for token in await accounts.tokens(ada)]


async def test_a_token_revoked_on_another_node_lets_nobody_in_after_a_second(accounts, ada, harness):
    made = await accounts.make_token(ada, name="script", scope="chat")
    other = Accounts(harness.node.store, harness.clock, harness.node.services.departures)
    await other.identify(made.secret)
    await accounts.revoke_token(ada, made.token.id)
    harness.clock.advance(SECOND)
    assert await other.identify(made.secret) is None


async def test_who_came_in_a_moment_ago_is_not_looked_up_again(accounts, ada, harness):
    made = await accounts.make_token(ada, name="script", scope="chat")
    await accounts.identify(made.secret)
    await harness.sql("UPDATE tokens SET revoked_at = 1")
    assert await accounts.identify(made.secret) is not None


async def test_a_token_ends_when_it_expires(accounts, ada, harness):
    made = await accounts.make_token(ada, name="script", scope="chat", expires_at=harness.clock.now() + HOUR)
    harness.clock.advance(HOUR)
    assert await accounts.identify(made.secret) is None
    assert await accounts.still_valid([made.token.id]) == set()


async def test_a_connection_learns_which_of_its_tokens_still_count(accounts, ada):
    kept, revoked = [await accounts.make_token(ada, name="socket", scope="chat") for _ in range(2)]
    await accounts.revoke_token(ada, revoked.token.id)
    asked = [kept.token.id, revoked.token.id, "never-made"]
    assert await accounts.still_valid(asked) == {kept.token.id}
    assert await accounts.still_valid([]) == set()


async def test_people_see_and_revoke_only_their_own_tokens(accounts, ada):
    bob = await come_in(accounts, ada)
    assert [token.id for token in await accounts.tokens(bob)] == [bob.token_id]
    with pytest.raises(rules.NoSuchToken):
        await accounts.revoke_token(bob, ada.token_id)
    assert await accounts.still_valid([ada.token_id]) == {ada.token_id}


async def test_a_token_may_revoke_itself_and_with_a_small_scope_no_other(accounts, ada):
    made = await accounts.make_token(ada, name="script", scope="read")
    script = await accounts.identify(made.secret)
    with pytest.raises(rules.ScopeTooSmall):
        await accounts.revoke_token(script, ada.token_id)
    await accounts.revoke_token(script, script.token_id)
    assert await accounts.identify(made.secret) is None


async def test_a_user_with_the_scope_admin_manages_nobody_else(accounts, ada):
    bob = await come_in(accounts, ada)
    for attempt in (
        accounts.users(bob),
        accounts.user(bob, ada.user.id),
        accounts.add_user(bob, name="Eve"),
        accounts.change_user(bob, ada.user.id, name="Eve"),
        accounts.change_user(bob, bob.user.id, role="owner"),
        accounts.delete_user(bob, ada.user.id),
        accounts.make_token(bob, name="hers", scope="read", user_id=ada.user.id),
        accounts.make_login_code(bob, ada.user.id),
    ):
        with pytest.raises(rules.OwnersOnly):
            await attempt


async def test_people_may_rename_themselves(accounts, ada):
    bob = await come_in(accounts, ada)
    assert (await accounts.change_user(bob, bob.user.id, name="Robert")).name == "Robert"
    assert (await accounts.user(bob, bob.user.id)).name == "Robert"


async def test_a_change_of_role_counts_for_tokens_that_are_in_use(accounts, ada):
    user = await accounts.add_user(ada, name="Bob")
    made = await accounts.make_token(ada, name="first", scope="admin", user_id=user.id)
    await accounts.identify(made.secret)
    await accounts.change_user(ada, user.id, role="owner")
    assert (await accounts.identify(made.secret)).user.role == "owner"


async def test_a_deleted_users_tokens_let_nobody_in(accounts, ada):
    user = await accounts.add_user(ada, name="Bob")
    made = await accounts.make_token(ada, name="first", scope="admin", user_id=user.id)
    await accounts.identify(made.secret)
    await accounts.delete_user(ada, user.id)
    assert await accounts.identify(made.secret) is None
    assert await accounts.still_valid([made.token.id]) == set()
    assert user.id not in [each.id for each in await accounts.users(ada)]
    with pytest.raises(rules.NoSuchUser):
        await accounts.make_token(ada, name="second", scope="read", user_id=user.id)


async def test_what_a_deleted_user_had_booked_is_cancelled_and_what_was_under_way_is_stopped(accounts, ada, harness):
    bob = await come_in(accounts, ada, role="owner")
    booked = [await harness.book(), await harness.book(call_type="recurring"), await harness.book(kind="next_run")]
    async with harness.talking(await harness.session()) as talk:
        await accounts.delete_user(bob, harness.user.id)
        for wake in booked:
            ended = await harness.wake(wake)
            assert (ended.status, ended.reason) == ("cancelled", "user_gone")
        await harness.work()
    assert (await harness.run(talk.id)).status == "stopped"
    await harness.live_until(harness.clock.now() + 3 * HOUR)
    assert [ran.run.id for ran in harness.executor.ran] == [talk.id]


async def test_the_last_owner_can_be_neither_demoted_nor_deleted(accounts, ada):
    with pytest.raises(rules.LastOwner):
        await accounts.change_user(ada, ada.user.id, role="user")
    with pytest.raises(rules.LastOwner):
        await accounts.delete_user(ada, ada.user.id)
    assert (await accounts.user(ada, ada.user.id)).role == "owner"


async def test_two_owners_who_remove_each_other_at_once_leave_one(accounts, ada):
    eve = await come_in(accounts, ada, "Eve", "owner")
    ends = await asyncio.gather(
        accounts.delete_user(ada, eve.user.id),
        accounts.change_user(eve, ada.user.id, role="user"),
        return_exceptions=True,
    )
    assert [type(end) for end in ends if isinstance(end, Exception)] == [rules.LastOwner]


# ── Login links and tickets ─────────────────────────────────────────────────────────────────────────────────────────


async def test_a_login_code_becomes_a_browsers_token_once(accounts, ada, harness):
    code = await accounts.make_login_code(ada)
    made = await accounts.log_in(code, "Firefox")
    found = await accounts.identify_browser(made.cookie, made.page_secret)
    assert (found.user, found.scope, found.kind) == (ada.user, "admin", "browser")
    assert found.logged_in_at == harness.clock.now()
    assert made.token.expires_at == harness.clock.now() + 90 * DAY
    assert await accounts.log_in(code, "Firefox") is None


async def test_of_two_browsers_with_one_code_one_gets_in(accounts, ada):
    code = await accounts.make_login_code(ada)
    ends = await asyncio.gather(*(accounts.log_in(code, "Firefox") for _ in range(4)))
    assert sum(end is not None for end in ends) == 1


async def test_a_login_code_ends_after_ten_minutes(accounts, ada, harness):
    early, late = [await accounts.make_login_code(ada) for _ in range(2)]
    harness.clock.advance(10 * MINUTE - SECOND)
    assert await accounts.log_in(early, "Firefox") is not None
    harness.clock.advance(SECOND)
    assert await accounts.log_in(late, "Firefox") is None


async def test_an_owner_can_hand_a_login_link_to_someone(accounts, ada):
    bob = await accounts.add_user(ada, name="Bob")
    made = await accounts.log_in(await accounts.make_login_code(ada, bob.id), "Firefox")
    assert (await accounts.identify_browser(made.cookie, made.page_secret)).user == bob


async def test_a_browser_needs_both_of_its_secrets(accounts, ada):
    first, second = [await accounts.log_in(await accounts.make_login_code(ada), "Firefox") for _ in range(2)]
    for page_secret in ("", first.cookie, second.page_secret):
        with pytest.raises(PageSecretMissing):
            await accounts.identify_browser(first.cookie, page_secret)
    for cookie in ("", first.page_secret):
        with pytest.raises(LoginEnded):
            await accounts.identify_browser(cookie, first.page_secret)
    assert await accounts.identify(first.cookie) is None
    assert await accounts.identify(first.page_secret) is None


async def test_neither_of_a_browsers_secrets_is_kept(accounts, ada, harness):
    made = await accounts.log_in(await accounts.make_login_code(ada), "Firefox")
    kept = await harness.node.store.read(lambda tx: tx.accounts.token_by_digest(digest_of(made.cookie)))
    assert kept.page_digest == digest_of(made.page_secret)
    assert not {made.cookie, made.page_secret} & set(map(str, asdict(kept).values()))


async def test_a_browser_that_logged_in_before_there_were_page_secrets_is_told_so(accounts, ada, harness):
    made = await accounts.log_in(await accounts.make_login_code(ada), "Firefox")
    old = replace(made.token, id="old", digest=digest_of("old"), page_digest=None)
    await harness.node.store.write(lambda tx: tx.accounts.add_token(old))
    for page_secret in ("", made.page_secret):
        with pytest.raises(LoginOutdated):
            await accounts.identify_browser("old", page_secret)
    assert [token.id for token in await accounts.tokens(ada) if token.kind == "browser"] == [made.token.id]


async def test_a_login_code_for_someone_who_is_gone_lets_nobody_in(accounts, ada):
    bob = await accounts.add_user(ada, name="Bob")
    code = await accounts.make_login_code(ada, bob.id)
    await accounts.delete_user(ada, bob.id)
    assert await accounts.log_in(code, "Firefox") is None


async def test_the_passes_of_a_revoked_token_open_nothing(accounts, ada):
    made = await accounts.make_token(ada, name="script", scope="admin")
    script = await accounts.identify(made.secret)
    code, ticket = await accounts.make_login_code(script), await accounts.make_ticket(script)
    await accounts.revoke_token(ada, made.token.id)
    assert await accounts.log_in(code, "Firefox") is None
    assert await accounts.use_ticket(ticket) is None


async def test_a_ticket_opens_one_socket_as_its_maker(accounts, ada):
    made = await accounts.make_token(ada, name="script", scope="chat")
    script = await accounts.identify(made.secret)
    ticket = await accounts.make_ticket(script)
    assert await accounts.use_ticket(ticket) == script
    assert await accounts.use_ticket(ticket) is None


async def test_a_ticket_ends_after_thirty_seconds(accounts, ada, harness):
    early, late = [await accounts.make_ticket(ada) for _ in range(2)]
    harness.clock.advance(29 * SECOND)
    assert await accounts.use_ticket(early) is not None
    harness.clock.advance(SECOND)
    assert await accounts.use_ticket(late) is None


async def test_a_ticket_is_no_login_code_and_a_code_no_ticket(accounts, ada):
    assert await accounts.log_in(await accounts.make_ticket(ada), "Firefox") is None
    assert await accounts.use_ticket(await accounts.make_login_code(ada)) is None


async def test_a_downloads_ticket_gets_its_own_address_once(accounts, ada):
    ticket = await accounts.make_ticket(ada, "/file?a=1")
    for wrong in ("/file?a=2", "/file?", "/other?a=1"):
        assert await accounts.use_ticket(ticket, wrong) is None
    assert await accounts.use_ticket(ticket) is None
    assert await accounts.use_ticket(ticket, "/file?a=1") == ada
    assert await accounts.use_ticket(ticket, "/file?a=1") is None


async def test_a_downloads_ticket_ends_after_thirty_seconds(accounts, ada, harness):
    ticket = await accounts.make_ticket(ada, "/file?")
    harness.clock.advance(30 * SECOND)
    assert await accounts.use_ticket(ticket, "/file?") is None


async def test_logging_out_ends_a_browsers_token_and_leaves_a_programs(accounts, ada):
    made = await accounts.log_in(await accounts.make_login_code(ada), "Firefox")
    await accounts.log_out(await accounts.identify_browser(made.cookie, made.page_secret))
    await accounts.log_out(ada)
    assert await accounts.still_valid([made.token.id, ada.token_id]) == {ada.token_id}


async def test_old_passes_are_forgotten_when_new_ones_are_made(accounts, ada, harness):
    old = digest_of(await accounts.make_ticket(ada))
    harness.clock.advance(MINUTE)
    await accounts.make_ticket(ada)
    long_ago = harness.clock.now() - DAY  # as if it had not expired yet
    assert await harness.node.store.write(lambda tx: tx.accounts.use_pass(old, "ticket", long_ago)) is None


async def test_tokens_are_forgotten_a_month_after_their_end(accounts, ada, harness):
    expired = await accounts.make_token(ada, name="a", scope="chat", expires_at=harness.clock.now() + HOUR)
    revoked = await accounts.make_token(ada, name="b", scope="chat")
    alive = await accounts.make_token(ada, name="c", scope="chat")
    await accounts.revoke_token(ada, revoked.token.id)

    async def are_known():
        await harness.node.engine.upkeep.forget()
        digests = [digest_of(each.secret) for each in (expired, revoked, alive)]
        return [
            await harness.node.store.read(lambda tx, d=d: tx.accounts.token_by_digest(d)) is not None for d in digests
        ]

    harness.clock.advance(30 * DAY)
    assert await are_known() == [True, True, True]
    harness.clock.advance(2 * HOUR)
    assert await are_known() == [False, False, True]


# ── Starts ──────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def start(backend_settings):
    """Start a server on an empty store, as often as it is called; returns the owner and everyone's door."""

    async def start(**settings):
        harness = Harness(backend_settings | settings)
        async with harness.node.opened():
            owner = await settle_owner(
                harness.node.store, harness.clock, harness.node.settings, harness.node.services.nodes
            )
            return owner, await known(harness)

    async def known(harness):
        accounts = Accounts(harness.node.store, harness.clock, harness.node.services.departures)
        return {secret: await accounts.identify(secret) for secret in watched}

    watched: list[str] = []
    start.watched = watched
    return start


async def test_the_first_start_makes_an_owner_and_a_token_that_only_this_user_can_read(start, backend_settings):
    owner, _ = await start()
    path = backend_settings["config_dir"] / "token"
    assert (owner.user.role, owner.scope) == ("owner", "admin")
    assert path.stat().st_mode & 0o777 == 0o600
    assert [each.name for each in path.parent.iterdir() if "token" in each.name] == ["token"]
    start.watched.append(path.read_text().strip())
    again, known = await start()
    assert again == owner
    assert known[start.watched[0]].user == owner.user


async def test_a_token_in_the_settings_is_the_owners_and_no_file_is_made(start, backend_settings):
    start.watched.append("chosen")
    owner, known = await start(token=SecretStr("chosen"))
    assert known["chosen"] == owner
    assert load_token(backend_settings["config_dir"]) is None


async def test_when_the_token_in_the_settings_changes_the_old_one_stops_working(start):
    start.watched += ["first", "second"]
    for token in ("first", "second", "first"):
        owner, known = await start(token=SecretStr(token))
        assert {secret for secret, identity in known.items() if identity} == {token}
    assert owner.user.id == FIRST_OWNER


async def test_a_token_in_the_settings_takes_the_place_of_the_one_in_the_file(start, backend_settings):
    await start()
    start.watched += [load_token(backend_settings["config_dir"]), "chosen"]
    _, known = await start(token=SecretStr("chosen"))
    assert {secret for secret, identity in known.items() if identity} == {"chosen"}


async def test_two_nodes_that_start_at_once_make_one_owner(postgres_url, tmp_path):
    settings = [
        Settings(
            database_url=SecretStr(postgres_url),
            data_dir=tmp_path / name,
            config_dir=tmp_path / name,
            device_key=SecretStr("ab" * 32),
        )
        for name in ("one", "two")
    ]
    worlds = [Harness(each.model_dump(exclude_unset=True)) for each in settings]
    async with worlds[0].node.opened(), worlds[1].node.opened():
        owners = await asyncio.gather(
            *(
                settle_owner(harness.node.store, harness.clock, harness.node.settings, harness.node.services.nodes)
                for harness in worlds * 3
            )
        )
        accounts = Accounts(worlds[0].node.store, worlds[0].clock, worlds[0].node.services.departures)
        assert {owner.user.id for owner in owners} == {FIRST_OWNER}
        assert [user.id for user in await accounts.users(owners[0])] == [FIRST_OWNER]
        # Each machine has made a token of its own, and commands on either must work.
        for each in settings:
            assert (await accounts.identify(load_token(each.config_dir))).user.id == FIRST_OWNER


async def test_a_revoked_token_in_the_file_is_replaced_at_the_next_start(harness, accounts, ada):
    old = load_token(harness.node.settings.config_dir)
    await accounts.revoke_token(ada, ada.token_id)
    await settle_owner(harness.node.store, harness.clock, harness.node.settings, harness.node.services.nodes)
    new = load_token(harness.node.settings.config_dir)
    assert await accounts.identify(old) is None
    assert (await accounts.identify(new)).user == ada.user
    assert (harness.node.settings.config_dir / "token").stat().st_mode & 0o777 == 0o600


async def test_a_revoked_token_in_the_settings_is_refused_at_the_next_start(harness, accounts):
    settings = harness.node.settings.model_copy(update={"token": SecretStr("leaked")})
    owner = await settle_owner(harness.node.store, harness.clock, settings, harness.node.services.nodes)
    await accounts.revoke_token(owner, owner.token_id)
    with pytest.raises(rules.TokenTaken, match="revoked"):
        await settle_owner(harness.node.store, harness.clock, settings, harness.node.services.nodes)


async def test_a_token_in_the_settings_that_is_someone_elses_is_refused(harness, accounts, ada):
    made = await accounts.make_token(ada, name="script", scope="read")
    settings = harness.node.settings.model_copy(update={"token": SecretStr(made.secret)})
    with pytest.raises(rules.TokenTaken, match="'script'"):
        await settle_owner(harness.node.store, harness.clock, settings, harness.node.services.nodes)
    assert (await accounts.identify(made.secret)).scope == "read"


async def test_when_the_first_owner_is_gone_the_token_is_the_next_ones(harness, accounts, ada):
    eve = await come_in(accounts, ada, "Eve", "owner")
    await accounts.delete_user(eve, ada.user.id)
    again = await settle_owner(harness.node.store, harness.clock, harness.node.settings, harness.node.services.nodes)
    assert again == replace(ada, user=eve.user)


async def test_a_token_file_without_a_token_is_named_and_left_alone(harness):
    path = harness.node.settings.config_dir / "token"
    path.parent.mkdir(exist_ok=True)
    path.write_text("\n")
    with pytest.raises(TokenFileUnusable, match="token"):
        await settle_owner(harness.node.store, harness.clock, harness.node.settings, harness.node.services.nodes)
    assert path.read_text() == "\n"
