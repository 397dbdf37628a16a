"""Models over REST: adding, changing, removing and choosing them, and every rule about their keys."""

import re

import pytest

from live_server import Provider, of_kind
from ollama_server import ollama
from ollama_server import say as ollama_say
from openai_server import OpenAIServer, call, json_of, listing, refuse, reply, say, stream, text, usage

KEY = "sk-a-secret-key-0123456789"


def body_of(endpoint: OpenAIServer, **more):
    return {"provider": "openai-chat", "model": "small", "address": endpoint.base_url, "name": "mine"} | more


@pytest.fixture
async def endpoint():
    async with Provider(routes={"GET /v1/models": listing("small", "large")}) as endpoint:
        yield endpoint


@pytest.fixture
async def models(server):
    """The server, without the models of earlier tests."""
    yield server
    for model in (await server.call("GET", "/models"))["models"]:
        await server.call("DELETE", f"/models/{model['name']}?force=true")


async def refused(server, method, path, **more):
    answer = await server.rest.request(method, path, **more)
    assert answer.is_error, answer.text
    return answer.status_code, answer.json()["error"]


async def test_an_added_model_is_used_at_once_with_its_own_key(models, endpoint):
    made = await models.call("POST", "/models", json=body_of(endpoint, key=KEY))
    assert (made["name"], made["has_key"], made["source"]) == ("mine", True, "added")
    await models.change_agent(model="mine")
    endpoint.then(say("Hello"))
    async with models.watch(await models.session()) as client:
        await client.ask("Hi")
    assert endpoint.requests[0].headers["authorization"] == f"Bearer {KEY}"
    assert endpoint.requests[0].body["model"] == "small"
    assert endpoint.requests[0].body["max_tokens"] == 8_192  # an output limit is always sent


async def test_a_key_is_never_shown_again(models, endpoint):
    made = await models.rest.post("/models", json=body_of(endpoint, key=KEY))
    listed, shown = await models.rest.get("/models"), await models.rest.get("/models/mine")
    for answer in (made, listed, shown):
        assert answer.is_success
        assert KEY not in answer.text
    rows = await models.node.store.read(lambda tx: tx.models.all())
    assert KEY not in repr(rows)
    [stored] = rows
    assert KEY.encode().hex() not in (stored.key or "")
    assert (stored.key or "") not in shown.text


@pytest.mark.parametrize("field", ["address", "provider"])
async def test_another_address_or_provider_drops_the_key(models, endpoint, field):
    await models.call("POST", "/models", json=body_of(endpoint, key=KEY))
    async with OpenAIServer(routes={"GET /v1/models": listing("small")}) as other:
        change = {"address": other.base_url} if field == "address" else {"provider": "vllm", "address": other.base_url}
        changed = await models.call("PATCH", "/models/mine", json=change)
        assert not changed["has_key"]
        assert all("authorization" not in request.headers for request in other.lookups)


async def test_a_key_given_with_the_new_address_is_kept(models, endpoint):
    await models.call("POST", "/models", json=body_of(endpoint, key=KEY))
    async with OpenAIServer(routes={"GET /v1/models": listing("small")}) as other:
        changed = await models.call("PATCH", "/models/mine", json={"address": other.base_url, "key": "k-2"})
        assert changed["has_key"]
        assert other.lookups[0].headers["authorization"] == "Bearer k-2"


async def test_a_stored_key_is_useless_with_another_address(models, endpoint):
    """Provider and address are authenticated: a row that was edited in the database does not decrypt."""
    await models.call("POST", "/models", json=body_of(endpoint, key=KEY))
    async with OpenAIServer() as thief:
        await models.sql(f"UPDATE models SET address = '{thief.base_url}' WHERE name = 'mine'")
        trial = await models.call("POST", "/models/test", json={"model": "mine"})
        assert (trial["outcome"], trial["problem"]) == ("failed", "key")
        assert "cannot be decrypted with the device key" in trial["reason"]
        assert not [*thief.requests, *thief.lookups]


async def test_no_key_of_the_environment_or_the_settings_is_used(models, endpoint, monkeypatch):
    for variable in ("OPENAI_API_KEY", "VLLM_API_KEY", "WAKEFUL_MODEL_API_KEY"):
        monkeypatch.setenv(variable, "sk-of-the-environment")
    for number, provider in enumerate(("openai-chat", "vllm")):
        name = f"mine-{number}"
        await models.call("POST", "/models", json=body_of(endpoint, provider=provider, name=name))
        endpoint.then(say("ready"))
        trial = await models.call("POST", "/models/test", json={"model": name})
        assert trial["outcome"] == "answered"
    assert all("authorization" not in each.headers for each in [*endpoint.lookups, *endpoint.requests])


async def test_a_provider_that_needs_a_key_is_refused_without_one(models, monkeypatch):
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-of-the-environment")
    status, error = await refused(models, "POST", "/models", json={"provider": "anthropic", "model": "claude-x"})
    assert (status, error["code"], error["field"]) == (400, "key_needed", "key")


@pytest.mark.parametrize(
    "address",
    [
        "http://169.254.169.254/v1",
        "http://[fe80::1]/v1",
        "http://[::ffff:169.254.169.254]/v1",
        "http://[64:ff9b::a9fe:a9fe]/v1",
        "http://0.0.0.0:1/v1",
        "http://100.100.100.200/v1",
    ],
)
async def test_link_local_and_metadata_addresses_are_refused(models, address):
    asked = {"provider": "openai-chat", "model": "x", "address": address, "check": False}
    status, error = await refused(models, "POST", "/models", json=asked)
    assert (status, error["code"]) == (403, "model_address_refused")
    status, error = await refused(models, "POST", "/models/list", json={"provider": "openai-chat", "address": address})
    assert (status, error["code"]) == (403, "model_address_refused")


async def test_a_name_that_resolves_to_a_refused_address_is_refused_when_connecting(models, monkeypatch):
    import asyncio

    async def resolve(*_, **__):
        return [(2, 1, 6, "", ("169.254.169.254", 0))]

    monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", resolve)
    asked = {"provider": "openai-chat", "address": "http://metadata.test/v1"}
    status, error = await refused(models, "POST", "/models/list", json=asked)
    assert (status, error["code"]) == (403, "model_address_refused")


async def test_a_key_goes_over_plain_http_only_to_private_addresses(models, monkeypatch):
    asked = {"provider": "openai-chat", "address": "http://93.184.216.34/v1", "key": KEY}
    status, error = await refused(models, "POST", "/models/list", json=asked)
    assert (status, error["code"]) == (403, "key_needs_https")
    assert KEY not in str(error)


@pytest.mark.parametrize(
    "address",
    [
        "ftp://x/v1",
        "ftp://user:pass@x/v1",
        "user:pass@x",
        "http://user:pass@x/v1",
        "http://user:pass#x@x/v1",
        "http://x/v1?key=pass",
        "x",
        "http://x:99999/",
    ],
)
async def test_an_address_that_is_not_plain_is_refused(models, address):
    asked = {"provider": "openai-chat", "model": "x", "address": address, "check": False}
    status, error = await refused(models, "POST", "/models", json=asked)
    assert (status, error["code"]) == (400, "bad_model_address")
    assert "pass" not in error["message"].replace("password", "")


async def test_an_address_that_is_too_long_is_refused_without_its_password(models):
    address = f"http://user:{'secret' * 20}@x/{'y' * 1_000}"
    asked = {"provider": "openai-chat", "model": "x", "address": address, "check": False}
    status, error = await refused(models, "POST", "/models", json=asked)
    assert (status, error["field"]) == (422, "address")
    assert "secret" not in str(error)


async def test_redirects_are_not_followed(models):
    async with OpenAIServer(routes={"GET /v1/models": listing("small")}) as target:
        moved = reply(307, b"", {"Location": f"{target.base_url}/models"})
        async with OpenAIServer(moved, routes={"GET /v1/models": moved}) as door:
            _status, error = await refused(models, "POST", "/models", json=body_of(door, key=KEY))
            assert "redirects are not followed" in error["message"]
            assert target.origin in error["message"]
            await models.call("POST", "/models", json=body_of(door, key=KEY, check=False))
            trial = await models.call("POST", "/models/test", json={"model": "mine"})
            assert (trial["outcome"], trial["problem"]) == ("failed", "address")
            assert "redirects are not followed" in trial["reason"]
        assert not [*target.requests, *target.lookups]


async def test_an_endpoints_own_words_are_cut(models):
    long = "Bad \x1b[31m" + "x" * 5_000
    async with OpenAIServer(routes={"GET /v1/models": refuse(400, long)}) as endpoint:
        _, error = await refused(models, "POST", "/models/list", json=body_of(endpoint) | {"name": None, "model": None})
    quoted = re.search(r"Bad .*x…", error["message"])
    assert quoted is None or len(quoted[0]) <= 300
    assert len(error["message"]) < 500
    assert "\x1b" not in error["message"]


async def test_only_owners_with_the_scope_admin(models, endpoint):
    user = await models.add_user()
    reader = await models.call("POST", "/tokens", json={"name": "r", "scope": "schedule"})
    for token, code in ((user, "owners_only"), (reader["secret"], "scope_too_small")):
        async with models.client(token) as client:
            for method, path, asked in (
                ("GET", "/models", None),
                ("GET", "/models/providers", None),
                ("POST", "/models", body_of(endpoint)),
                ("POST", "/models/list", {"provider": "ollama"}),
                ("POST", "/models/discover", None),
                ("POST", "/models/test", {}),
                ("PUT", "/models/default", {"model": "demo"}),
                ("PATCH", "/models/mine", {"context_window": 9_000}),
                ("DELETE", "/models/mine", None),
            ):
                answer = await client.request(method, path, json=asked)
                assert (answer.status_code, answer.json()["error"]["code"]) == (403, code), (method, path)
    assert not endpoint.lookups


async def test_a_model_that_agents_use_is_removed_only_by_force_and_then_runs_say_why(models, endpoint):
    await models.call("POST", "/models", json=body_of(endpoint))
    await models.change_agent(model="mine")
    status, error = await refused(models, "DELETE", "/models/mine")
    assert (status, error["code"]) == (409, "model_in_use")
    assert "Wakeful (Owner)" in error["message"]
    await models.call("DELETE", "/models/mine?force=true")
    async with models.watch(await models.session()) as client:
        frames = await client.ask("Hi")
    [failed] = of_kind(frames, "error")
    assert "There is no model 'mine'" in failed["message"]
    assert not endpoint.requests
    assert not models.provider.requests  # never on another model


async def test_every_user_is_told_the_names_of_models(models, endpoint):
    await models.call("POST", "/models", json=body_of(endpoint, key=KEY))
    assert (await models.call("GET", "/about", token=await models.add_user()))["models"] == ["mine"]


async def test_an_allowed_model_counts_as_used(models, endpoint):
    await models.call("POST", "/models", json=body_of(endpoint))
    await models.change_agent(allowed_models=["mine"])
    assert (await models.call("GET", "/models"))["models"][0]["used_by"] == ["Wakeful (Owner)"]
    _, error = await refused(models, "DELETE", "/models/mine")
    assert error["code"] == "model_in_use"
    await models.change_agent(allowed_models=[])
    assert (await models.call("GET", "/models/mine"))["used_by"] == []
    await models.call("DELETE", "/models/mine")


async def test_a_wrong_id_is_refused_with_the_nearest_and_saved_only_unchecked(models, endpoint):
    status, error = await refused(models, "POST", "/models", json=body_of(endpoint, model="smal"))
    assert (status, error["code"]) == (400, "model_not_listed")
    assert "The nearest is 'small'" in error["message"]
    made = await models.call("POST", "/models", json=body_of(endpoint, model="smal", check=False))
    assert made["model"] == "smal"


@pytest.mark.parametrize("name", ["demo", "providers", "With Blank", "a:b", "-x", "ä"])
async def test_a_reserved_or_odd_name_is_refused(models, endpoint, name):
    status, _ = await refused(models, "POST", "/models", json=body_of(endpoint, name=name))
    assert status == 400


async def test_a_name_is_taken_once(models, endpoint):
    await models.call("POST", "/models", json=body_of(endpoint))
    status, error = await refused(models, "POST", "/models", json=body_of(endpoint))
    assert (status, error["code"]) == (409, "model_name_taken")
    made = await models.call("POST", "/models", json=body_of(endpoint) | {"name": None})
    assert made["name"] == "small"


async def test_limits_and_prices_that_the_endpoint_states_are_filled_in(models):
    fact = {
        "id": "small",
        "context_length": 32_000,
        "top_provider": {"max_completion_tokens": 4_000},
        "pricing": {"prompt": "0.000001", "completion": "0.000002"},
        "architecture": {"input_modalities": ["text", "image"]},
    }
    async with OpenAIServer(routes={"GET /v1/models": listing(fact)}) as endpoint:
        made = await models.call("POST", "/models", json=body_of(endpoint, context_window=16_000))
    assert (made["context_window"], made["output_limit"]) == (16_000, 4_000)  # the owner's own number stays
    assert (made["input_price"], made["output_price"], made["images"]) == (1.0, 2.0, True)


async def test_a_price_counts_toward_budgets(models, endpoint):
    await models.call("POST", "/models", json=body_of(endpoint, input_price=2, output_price=10))
    await models.change_agent(model="mine", budgets={"run_cost": 5})
    endpoint.then(say("Hello"))  # 12 tokens in, 1 out
    session = await models.session()
    async with models.watch(session) as client:
        await client.ask("Hi")
    [run] = await models.runs_of(session)
    assert run["usage"]["cost"] == pytest.approx((12 * 2 + 1 * 10) / 1_000_000)
    await models.change_agent(model=None, budgets={"run_cost": None})


async def test_a_name_that_the_owner_gives_a_number_too_large_says_the_limit(models, endpoint):
    status, error = await refused(models, "POST", "/models", json=body_of(endpoint, context_window=10))
    assert status in (400, 422)
    assert "1000" in error["message"].replace(",", "")
    asked = body_of(endpoint, context_window=2_000, output_limit=3_000)
    _, error = await refused(models, "POST", "/models", json=asked)
    assert "must be smaller than `context_window`" in error["message"]


async def test_the_provider_list_says_what_each_needs(models):
    providers = {each["id"]: each for each in (await models.call("GET", "/models/providers"))["providers"]}
    assert providers["anthropic"]["needs_key"]
    assert providers["anthropic"]["lists_models"]
    assert providers["ollama"]["is_local"]
    assert not providers["ollama"]["needs_key"]
    assert providers["azure"]["address"] is None
    assert providers["azure"]["address_example"]
    assert providers["bedrock"]["extra"] == "bedrock"


async def test_ollama_is_run_with_the_window_that_it_is_told(models):
    async with ollama(ollama_say("Hello"), own=32_768, parameters="num_ctx 8192") as local:
        made = await models.call(
            "POST", "/models", json={"provider": "ollama", "model": "qwen3:8b", "address": local.base_url}
        )
        assert (made["name"], made["address"]) == ("qwen3-8b", local.origin)
        assert made["context_window"] is None  # asked for at each run
        assert (made["abilities"]["context_window"], made["abilities"]["is_window_known"]) == (8_192, True)
        await models.change_agent(model="qwen3-8b", toolsets=[], self_scheduling=False)
        async with models.watch(await models.session()) as client:
            frames = await client.ask("Hi")
        assert frames[-1]["max_context_tokens"] == 8_192
        [request] = local.requests
        assert (request.path, request.body["options"]) == ("/api/chat", {"num_ctx": 8_192, "num_predict": 2_048})


async def test_html_in_place_of_a_list_is_said_in_words(models):
    page = reply(200, b"<!doctype html><title>Welcome</title>", {"Content-Type": "text/html"})
    async with OpenAIServer(page, routes={"GET /v1/models": page}) as endpoint:
        _, error = await refused(models, "POST", "/models", json=body_of(endpoint))
        assert "not JSON, such as a web page. Is the address right?" in error["message"]
        await models.call("POST", "/models", json=body_of(endpoint, check=False))
        trial = await models.call("POST", "/models/test", json={"model": "mine"})
        assert (trial["problem"], "web page" in trial["reason"]) == ("not_a_model", True)


async def test_a_wrong_address_is_said_in_words(models):
    asked = {"provider": "ollama", "model": "x", "address": "http://127.0.0.1:1"}
    status, error = await refused(models, "POST", "/models", json=asked)
    assert (status, error["code"], error["field"]) == (503, "model_unchecked", "address")
    assert "Ollama at http://127.0.0.1:1 cannot be reached" in error["message"]
    assert "Is it running?" in error["message"]


async def test_a_wrong_key_is_said_in_words(models):
    no = json_of({"error": {"message": f"Incorrect API key provided: {KEY}", "code": "invalid_api_key"}}, 401)
    async with OpenAIServer(routes={"GET /v1/models": no}) as endpoint:
        _, error = await refused(models, "POST", "/models", json=body_of(endpoint, key=KEY))
    assert "refused the key: Incorrect API key provided: [hidden] (HTTP 401)" in error["message"]
    assert error["field"] == "key"


async def test_the_list_of_a_provider_leaves_out_what_is_not_for_conversations(models):
    listed = listing("gpt-5", "text-embedding-3-small", "whisper-1", {"id": "cut\n", "x": 1}, {"no": "id"})
    async with OpenAIServer(routes={"GET /v1/models": listed}) as endpoint:
        asked = {"provider": "openai-chat", "address": endpoint.base_url}
        found = await models.call("POST", "/models/list", json=asked)
    assert [each["id"] for each in found["models"]] == ["cut", "gpt-5"]


async def test_the_list_of_an_added_model_is_asked_with_its_own_key(models, endpoint):
    await models.call("POST", "/models", json=body_of(endpoint, key=KEY))
    endpoint.lookups.clear()
    found = await models.call("POST", "/models/list", json={"name": "mine"})
    assert [each["id"] for each in found["models"]] == ["large", "small"]
    assert endpoint.lookups[0].headers["authorization"] == f"Bearer {KEY}"


async def test_a_prompt_that_the_provider_cuts_is_noticed(models, endpoint):
    """A server that drops what does not fit into its window counts far fewer tokens than were sent."""
    await models.call("POST", "/models", json=body_of(endpoint))
    await models.change_agent(model="mine")
    endpoint.then(stream(*text("Fine."), usage(2_000, 2)), stream(*text("Fine."), usage(2_000, 2)))
    async with models.watch(await models.session()) as client:
        await client.ask("word " * 8_000)
    session = await models.session()
    async with models.watch(session) as client:
        frames = await client.ask("word " * 8_000)
    [note] = of_kind(frames, "server_note")
    assert note["code"] == "prompt_cut"
    assert "dropped a part of what it was sent" in note["text"]
    answer = (await models.call("GET", f"/sessions/{session}"))["messages"][-1]
    assert (answer["content"], answer["remark"]) == ("Fine.", "prompt_cut")
    [run] = (await models.call("GET", f"/runs?session_id={session}"))["runs"]
    assert (run["status"], run["note"]) == ("success", "prompt_cut")
    [notice] = [
        each for each in (await models.call("GET", "/notifications"))["notifications"] if each["code"] == "prompt_cut"
    ]
    assert "its provider counted 2,000" in notice["body"]
    await models.change_agent(model=None)


async def test_a_cut_prompt_is_remarked_once_in_a_run_whatever_the_answers_are(models, endpoint):
    await models.call("POST", "/models", json=body_of(endpoint))
    await models.change_agent(model="mine")
    cut = usage(2_000, 2)
    endpoint.then(
        stream(*call("read_file", '{"path": "a.txt"}'), cut, finish="tool_calls"),
        stream(*text('<tool_call>{"name": "read_file", "arguments": {}}</tool_call>'), cut),
    )
    session = await models.session()
    async with models.watch(session) as client:
        frames = await client.ask("word " * 8_000)
    assert [note["code"] for note in of_kind(frames, "server_note")] == ["prompt_cut", "call_as_text"]
    saved = (await models.call("GET", f"/sessions/{session}"))["messages"]
    assert [each["remark"] for each in saved if each["role"] == "assistant"] == ["prompt_cut", "call_as_text"]
    [run] = (await models.call("GET", f"/runs?session_id={session}"))["runs"]
    assert run["note"] == "call_as_text"
    await models.change_agent(model=None)


async def test_an_answer_that_ends_at_the_limit_of_a_cut_prompt_is_remarked(models, endpoint):
    await models.call("POST", "/models", json=body_of(endpoint))
    await models.change_agent(model="mine")
    endpoint.then(stream(*text("Fi"), usage(2_000, 2), finish="length"))
    session = await models.session()
    async with models.watch(session) as client:
        frames = await client.ask("word " * 8_000)
    assert [note["code"] for note in of_kind(frames, "server_note")] == ["prompt_cut"]
    saved = (await models.call("GET", f"/sessions/{session}"))["messages"]
    assert [each.get("remark") for each in saved if each["role"] == "assistant"] == ["prompt_cut", None]
    await models.change_agent(model=None)
