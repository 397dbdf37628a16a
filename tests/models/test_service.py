"""Models in the store: the default, the settings file, fresh logins, several nodes and device keys."""

import os
from dataclasses import replace
from datetime import timedelta

import pytest

from asgi_client import opened_doors, opened_rest
from harness import Harness, eventually
from openai_server import OpenAIServer, listing
from wakeful.config.settings import Settings
from wakeful.core.errors import WakefulError
from wakeful.core.identity import Identity
from wakeful.core.records import Model, ModelTest
from wakeful.datadir.device_key import rotate_device_key
from wakeful.models.catalog import decrypt_key, encrypt_key
from wakeful.models.names import NoSuchModel
from wakeful.models.rules import ModelKeyUnreadable

pytestmark = pytest.mark.both_stores

ASKED = {"provider": "openai-chat", "model": "small", "address": "http://127.0.0.1:1/v1", "check": False}
FROM_FILE = Model(name="mine", provider="ollama", model="x", address="http://127.0.0.1:1", source="settings")


@pytest.fixture
async def rest(backend_settings):
    async with opened_rest(backend_settings) as rest:
        yield rest


async def test_the_first_choice_of_a_default_needs_no_restart(rest):
    assert (await rest.call("GET", "/models"))["default"] == {
        "model": "demo",
        "source": "built_in",
        "is_removed": False,
    }
    assert (await rest.call("GET", "/about"))["is_demo"]
    await rest.call("POST", "/models", json=ASKED | {"name": "mine", "make_default": True})
    assert (await rest.call("GET", "/models"))["default"] == {
        "model": "mine",
        "source": "chosen",
        "is_removed": False,
    }
    about = await rest.call("GET", "/about")
    assert (about["model"], about["is_demo"]) == ("mine", False)
    assert await rest.call("PUT", "/models/default", json={"model": "ollama:qwen3"}) == {
        "model": "ollama:qwen3",
        "source": "chosen",
        "is_removed": False,
    }
    status, body = await rest.ask("PUT", "/models/default", json={"model": "mein"})
    assert (status, body["error"]["code"]) == (400, "no_such_model")
    assert "did you mean 'mine'?" in body["error"]["message"]
    assert (await rest.call("PUT", "/models/default", json={"model": None}))["model"] == "demo"


async def test_the_default_is_in_use_too(rest):
    await rest.call("POST", "/models", json=ASKED | {"name": "mine", "make_default": True})
    status, body = await rest.ask("DELETE", "/models/mine")
    assert (status, body["error"]["code"]) == (409, "model_in_use")
    await rest.call("DELETE", "/models/mine?force=true")
    assert (await rest.call("GET", "/models"))["default"]["model"] == "mine"  # its runs fail, on no other model
    status, body = await rest.ask("POST", "/models/test", json={})
    assert "The default model 'mine' was removed." in body["reason"]


async def test_a_default_of_the_settings_is_changed_there(backend_settings):
    async with opened_rest(backend_settings | {"model": "ollama:x"}) as rest:
        status, body = await rest.ask("PUT", "/models/default", json={"model": "demo"})
        assert (status, body["error"]["code"]) == (409, "default_from_settings")


async def test_a_name_of_the_settings_file_is_neither_changed_nor_taken(backend_settings):
    async with opened_rest(backend_settings | {"models": {"mine": FROM_FILE}}) as rest:
        [shown] = (await rest.call("GET", "/models"))["models"]
        assert (shown["name"], shown["source"]) == ("mine", "settings")
        for method, path, asked in (
            ("POST", "/models", ASKED | {"name": "mine"}),
            ("PATCH", "/models/mine", {"context_window": 9_000}),
            ("DELETE", "/models/mine?force=true", None),
        ):
            status, body = await rest.ask(method, path, json=asked)
            assert (status, body["error"]["code"]) == (409, "model_from_settings"), (method, path)


async def test_a_file_model_hides_an_added_one_of_the_same_name(backend_settings, tmp_path):
    async with opened_rest(backend_settings) as rest:
        await rest.call("POST", "/models", json=ASKED | {"name": "mine", "key": "k-1"})
    async with opened_rest(backend_settings | {"models": {"mine": FROM_FILE}}) as rest:
        [shown] = (await rest.call("GET", "/models"))["models"]
        assert (shown["provider"], shown["has_key"]) == ("ollama", False)


async def test_a_start_with_an_unknown_default_is_refused(backend_settings):
    harness = Harness(backend_settings | {"model": "mein"})
    with pytest.raises(NoSuchModel, match="There is no model 'mein'"):
        async with harness.node.opened():
            pass


OLD = Model(name="old", provider="openai-chat", model="x", address="http://127.0.0.1:1/v1", tool_calls="text")


async def test_text_of_0_2_is_read_as_none_with_one_notice(backend_settings):
    """`tool_calls = text` made the calls that a model wrote as text, also those of strangers that it quoted."""
    async with opened_rest(backend_settings) as rest:
        store, now = rest.harness.node.store, rest.harness.clock.now()
        tested = ModelTest(name="ollama:qwen3", subject="any", tool_calls="text", tested_at=now)
        await store.write(lambda tx: tx.models.add(replace(OLD, created_at=now, updated_at=now)))
        await store.write(lambda tx: tx.models.save_test(tested))
    settings = backend_settings | {"models": {"mine": replace(FROM_FILE, tool_calls="text")}}
    for _ in range(2):
        async with opened_rest(settings) as rest:
            listed = await rest.call("GET", "/models")
            notices = (await rest.call("GET", "/notifications"))["notifications"]
        shown = {each["name"]: each["tool_calls"] for each in listed["models"]}
        assert shown == {"mine": "none", "old": "none"}
        assert [each["abilities"]["tool_calls"] for each in listed["models"]] == ["none", "none"]
        assert listed["calls_as_text"] == ["mine", "old", "ollama:qwen3"]
        [notice] = [each for each in notices if each["code"] == "calls_as_text"]
        assert "mine, old, ollama:qwen3" in notice["body"]


async def test_a_new_text_is_refused_with_the_reason_and_an_old_one_hinders_no_other_change(rest):
    now = rest.harness.clock.now()
    await rest.harness.node.store.write(lambda tx: tx.models.add(replace(OLD, created_at=now, updated_at=now)))
    for method, path, asked in (
        ("POST", "/models", ASKED | {"name": "mine", "tool_calls": "text"}),
        ("PATCH", "/models/old", {"tool_calls": "text"}),
    ):
        status, body = await rest.ask(method, path, json=asked)
        assert (status, body["error"]["field"]) == (400, "tool_calls")
        assert "strangers" in body["error"]["message"]
        assert "'none'" in body["error"]["message"]
    changed = await rest.call("PATCH", "/models/old", json={"context_window": 9_000})
    assert (changed["tool_calls"], changed["context_window"]) == ("none", 9_000)
    assert (await rest.call("PATCH", "/models/old", json={"tool_calls": "none"}))["tool_calls"] == "none"
    assert (await rest.call("GET", "/models"))["calls_as_text"] == []


@pytest.fixture
async def doors(tmp_path):
    settings = {"data_dir": tmp_path, "config_dir": tmp_path, "store_encryption": False, "token": "t" * 30}
    harness = Harness(settings)
    async with opened_doors(harness) as doors:
        yield doors, harness.node.services.models


async def test_changes_need_a_token_or_a_login_of_the_last_ten_minutes(doors):
    doors, models = doors
    owner = doors.owner
    login = await doors.log_in()
    browser = await doors.accounts.identify_browser(login.cookie, login.page_secret)
    assert browser.kind == "browser"
    doors.clock.advance(timedelta(minutes=10, seconds=1))

    async def attempts(caller: Identity) -> list[str]:
        """Return the codes of what is refused."""
        asked = {name: value for name, value in ASKED.items() if name != "check"} | {"name": "mine"}
        codes: list[str] = []
        for attempt in (
            lambda: models.add(caller, asked, key=None, is_checked=False, is_default=False),
            lambda: models.change(caller, "mine", {"context_window": 9_000}, key=None, is_checked=False),
            lambda: models.choose_default(caller, None),
            lambda: models.list_models(caller, name=None, provider="azure", address="https://x.test", key=None),
            lambda: models.remove(caller, "mine", is_forced=False),
        ):
            try:
                await attempt()
            except WakefulError as error:
                codes.append(error.code)
        return codes

    assert await attempts(browser) == ["login_too_old"] * 5
    assert await attempts(owner) == []
    assert await models.all(browser) == []  # reading is not limited


async def test_another_node_knows_an_added_model_without_a_restart(postgres_url, tmp_path):
    settings = {"data_dir": tmp_path, "config_dir": tmp_path, "database_url": postgres_url}
    async with opened_rest(settings) as rest:
        other = rest.harness.another_node()
        async with other.opened():
            await rest.call("POST", "/models", json=ASKED | {"name": "mine", "key": "k-1", "make_default": True})

            async def knows() -> bool:
                return other.services.models.catalog.default == "mine"

            await eventually(knows, 5)
            catalog = other.services.models.catalog
            found = catalog.find("mine")
            assert found is not None
            assert catalog.key_of(found) == "k-1"


@pytest.mark.parametrize("is_encrypted", [True, False])
async def test_a_rotated_device_key_still_opens_the_keys_of_models(backend_settings, is_encrypted):
    settings = {name: value for name, value in backend_settings.items() if name != "device_key"}
    settings |= {"store_encryption": is_encrypted}
    async with opened_rest(settings) as rest:
        await rest.call("POST", "/models", json=ASKED | {"name": "mine", "key": "k-1"})
    import asyncio

    await asyncio.to_thread(rotate_device_key, Settings.model_validate(settings))
    async with opened_rest(settings) as rest:
        catalog = rest.harness.node.services.models.catalog
        found = catalog.find("mine")
        assert found is not None
        assert catalog.key_of(found) == "k-1"


def test_a_key_is_bound_to_provider_and_address():
    device = os.urandom(32)
    model = Model(name="m", provider="openai", model="x", address="https://a.test")
    sealed = Model(**{**_fields(model), "key": encrypt_key(device, "k-1", "openai", "https://a.test")})
    assert decrypt_key(device, sealed) == "k-1"
    for changed in ({"address": "https://b.test"}, {"provider": "groq"}):
        with pytest.raises(ModelKeyUnreadable):
            decrypt_key(device, Model(**{**_fields(sealed), **changed}))
    with pytest.raises(ModelKeyUnreadable):
        decrypt_key(os.urandom(32), sealed)


def _fields(model: Model) -> dict[str, object]:
    return {name: getattr(model, name) for name in ("name", "provider", "model", "address", "key")}


async def test_local_models_are_found_by_the_form_of_their_list(backend_settings):
    async with (
        OpenAIServer(
            routes={"GET /v1/models": listing({"id": "v", "owned_by": "vllm", "max_model_len": 9_000})}
        ) as vllm,
        OpenAIServer(routes={"GET /v1/models": listing({"id": "g.gguf", "owned_by": "llamacpp"})}) as llama,
        OpenAIServer(routes={"GET /v1/models": listing({"id": "l", "owned_by": "organization_owner"})}) as studio,
        OpenAIServer(routes={"GET /v1/models": listing({"id": "q:8b", "owned_by": "library"})}) as ollama,
        OpenAIServer() as nothing,
    ):
        servers = (vllm, llama, studio, ollama, nothing)
        ports = [server.port for server in servers]
        async with opened_rest(backend_settings | {"local_model_ports": ports, "model_api_key": "k"}) as rest:
            found = (await rest.call("POST", "/models/discover"))["servers"]
            assert (await rest.call("GET", "/models"))["models"] == []  # offered, not used
        assert [each["provider"] for each in found] == ["vllm", "llamacpp", "lmstudio", "ollama"]
        assert found[0]["models"][0]["context_window"] == 9_000
        assert found[3]["address"] == ollama.origin
        for server in servers:
            [asked] = server.lookups  # one list request
            assert "authorization" not in asked.headers
