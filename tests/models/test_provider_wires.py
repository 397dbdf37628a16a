"""Every provider by name, against a scripted server that speaks as it does."""

import contextlib
from datetime import UTC, datetime

import pytest
from pydantic_ai.messages import (
    BinaryContent,
    ModelRequest,
    ModelResponse,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.providers import infer_provider_class
from pydantic_ai.settings import ModelSettings
from pydantic_ai.tools import ToolDefinition

import anthropic_server
import bedrock_server
import google_server
import ollama_server
from network.tls_proxy import tls_proxy
from openai_server import OpenAIServer, call, calls, chunk, json_of, listing, raw, refuse, say, stream, text, usage
from wakeful.config.settings import Settings
from wakeful.core.clock import ManualClock
from wakeful.core.records import Model
from wakeful.datadir.device_key import database_of
from wakeful.models import lists
from wakeful.models.by_name import Models
from wakeful.models.catalog import ModelCatalog
from wakeful.models.errors import ModelFailed
from wakeful.models.library import MAX_SHORT
from wakeful.models.providers import LIBRARY_PROVIDERS, PROVIDERS
from wakeful.models.rules import ModelNotListed
from wakeful.models.trials import ModelTests
from wakeful.store.store import Store

NOON = datetime(2026, 3, 2, 12, 0, tzinfo=UTC)
KEY = "sk-own"
CHAT = [each for each in PROVIDERS.values() if each.wire == "chat"]
TOOL = ToolDefinition(name="look", description="Look.", parameters_json_schema={"type": "object", "properties": {}})


@pytest.fixture(autouse=True)
def keys_of_the_machine(monkeypatch):
    """Every provider's variable is set: no added model may use one."""
    for provider in PROVIDERS.values():
        for variable in provider.key_variables:
            monkeypatch.setenv(variable, "sk-of-the-environment")
    monkeypatch.setenv("ANTHROPIC_AUTH_TOKEN", "token-of-the-environment")
    monkeypatch.setenv("ANTHROPIC_CUSTOM_HEADERS", "x-gateway-key: sk-of-the-environment")


@pytest.fixture
def added(tmp_path):
    """Return a function that makes the models of a node with one added model, called `mine`."""

    def make(provider: str, address: str, model: str = "m", **fields) -> Models:
        settings = Settings.model_validate({"data_dir": tmp_path, "config_dir": tmp_path, "store_encryption": False})
        mine = Model(name="mine", provider=provider, model=model, address=address, source="settings", **fields)
        catalog = ModelCatalog(Store(database_of(settings)), b"0" * 32, {"mine": mine}, None)
        return Models(clock=ManualClock(NOON), catalog=catalog)

    return make


async def ask(models, messages=None, *, tools=(), **settings):
    model = await models.load("mine")
    messages = messages or [ModelRequest.user_text_prompt("Hi")]
    parameters = ModelRequestParameters(function_tools=list(tools), allow_text_output=True)
    return await model.request(messages, ModelSettings(**settings) if settings else None, parameters)


TALK = [
    ModelRequest.user_text_prompt("Look."),
    ModelResponse(parts=[ToolCallPart("look", "{}", tool_call_id="call_0123456789")]),
    ModelRequest(parts=[ToolReturnPart("look", "A cat.", tool_call_id="call_0123456789")]),
]


@pytest.mark.parametrize("provider", CHAT, ids=[each.id for each in CHAT])
async def test_chat_providers_are_asked_with_our_own_client(provider, added):
    async with OpenAIServer(say("Hello")) as server:
        models = added(provider.id, server.base_url, key=KEY)
        answer = await ask(models, TALK, tools=[TOOL], thinking="high")
        await models.aclose()
    assert answer.parts == [TextPart("Hello")]
    [request] = server.requests
    assert request.path == "/v1/chat/completions"
    sent = {name: request.headers.get(name) for name in ("authorization", "api-key")}
    expected = {"authorization": None, "api-key": KEY} if provider.id == "azure" else {"authorization": f"Bearer {KEY}"}
    assert sent == {"api-key": None} | expected
    assert request.body[provider.dialect.output_field] == 8_192
    assert "sk-of-the-environment" not in str(request)


async def test_mistral_gets_nothing_that_it_refuses(added):
    async with OpenAIServer(say("Hello")) as server:
        models = added("mistral", server.base_url, key=KEY)
        await ask(models, TALK, tools=[TOOL], seed=7)
        await models.aclose()
    body = server.requests[0].body
    known = {"model", "messages", "stream", "tools", "max_tokens", "random_seed"}
    assert body.keys() == known
    called, returned = body["messages"][1]["tool_calls"][0]["id"], body["messages"][2]["tool_call_id"]
    assert called == returned
    assert len(called) == 9
    assert called.isalnum()


async def test_mistrals_thinking_is_read_and_not_sent_back(added):
    thought = {"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "Hm."}]}]}
    async with OpenAIServer(stream(chunk(thought), *text("Yes."), usage(1, 1)), say("Again")) as server:
        models = added("mistral", server.base_url, key=KEY)
        answer = await ask(models)
        assert [type(part) for part in answer.parts] == [ThinkingPart, TextPart]
        await ask(models, [ModelRequest.user_text_prompt("Hi"), answer, ModelRequest.user_text_prompt("And?")])
        await models.aclose()
    assert server.requests[1].body["messages"][1] == {"role": "assistant", "content": "Yes."}


async def test_openrouter_has_its_own_field_for_thinking(added):
    async with OpenAIServer(say("Hello")) as server:
        models = added("openrouter", server.base_url, key=KEY)
        await ask(models, thinking="high")
        await models.aclose()
    assert server.requests[0].body["reasoning"] == {"effort": "high"}


async def test_azures_dated_api_has_the_deployment_in_its_path(added):
    async with OpenAIServer(say("Hello")) as server:
        models = added("azure", f"{server.origin}?api-version=2024-10-21", "my deployment", key=KEY)
        await ask(models)
        await models.aclose()
    path = "/openai/deployments/my%20deployment/chat/completions?api-version=2024-10-21"
    assert server.requests[0].path == path


async def test_anthropic_is_asked_with_its_own_key_and_address(added):
    async with anthropic_server.anthropic() as server:
        models = added("anthropic", server.origin, "claude-x", key=KEY, output_limit=1_000)
        model = await models.load("mine")
        async with model.request_stream(
            [ModelRequest.user_text_prompt("Hi")], None, ModelRequestParameters()
        ) as response:
            async for _ in response:
                pass
        await models.aclose()
    [request] = server.requests
    assert (request.headers["authorization"], request.body["max_tokens"]) == (f"Bearer {KEY}", 1_000)
    assert "of-the-environment" not in str(request)


async def test_google_is_asked_with_its_own_key_and_address(added):
    async with google_server.google() as server:
        models = added("google", server.origin, "gemini-x", key=KEY)
        answer = await ask(models)
        await models.aclose()
    assert answer.parts[0].content == "Hello."
    [request] = server.requests
    assert request.headers["x-goog-api-key"] == KEY
    assert "of-the-environment" not in str(request)


async def test_bedrock_is_asked_with_its_own_key_and_address(added, tmp_path, monkeypatch):
    async with bedrock_server.bedrock() as server, tls_proxy("localhost", server.port, tmp_path) as port:
        monkeypatch.setenv("AWS_CA_BUNDLE", str(tmp_path / "proxy.pem"))
        models = added("bedrock", f"https://localhost:{port}", "us.anthropic.claude-x-v1:0", key=KEY)
        model = await models.load("mine")
        async with model.request_stream(
            [ModelRequest.user_text_prompt("Hi")], None, ModelRequestParameters()
        ) as response:
            async for _ in response:
                pass
        await models.aclose()
    [request] = server.requests
    assert request.headers["authorization"] == f"Bearer {KEY}"
    assert "of-the-environment" not in str(request)


@pytest.mark.parametrize(
    ("provider", "model", "limit"),
    [
        ("anthropic", "claude-opus-5", 128_000),
        ("anthropic", "claude-x", 32_000),
        ("google", "gemini-2.5-flash", 65_536),
        ("bedrock", "us.anthropic.claude-sonnet-4-5-20250929-v1:0", 64_000),
        ("bedrock", "meta.llama3-1-8b-instruct-v1:0", 2_048),
        ("bedrock", "deepseek.v3-v1:0", 8_192),
    ],
)
async def test_libraries_are_told_the_models_output_limit(added, tmp_path, monkeypatch, provider, model, limit):
    speaking = {
        "anthropic": anthropic_server.anthropic,
        "google": google_server.google,
        "bedrock": bedrock_server.bedrock,
    }
    async with speaking[provider]() as server, tls_proxy("localhost", server.port, tmp_path) as port:
        monkeypatch.setenv("AWS_CA_BUNDLE", str(tmp_path / "proxy.pem"))
        address = f"https://localhost:{port}" if provider == "bedrock" else server.origin
        models = added(provider, address, model, key=KEY)
        made = await models.load("mine")
        for settings in (ModelSettings(max_tokens=models.abilities("mine").output_limit), None):
            asked = made.request_stream([ModelRequest.user_text_prompt("Hi")], settings, ModelRequestParameters())
            async with asked as answer:
                async for _ in answer:
                    pass
        await models.aclose()
    assert [sent_limit(request.body) for request in server.requests] == [limit, min(limit, MAX_SHORT)]


def sent_limit(body):
    config = body.get("generationConfig") or body.get("inferenceConfig") or {}
    return body.get("max_tokens") or config.get("maxOutputTokens") or config.get("maxTokens")


async def test_ollama_gets_its_own_api_with_window_and_limit(added):
    async with ollama_server.ollama(ollama_server.say("Hel", "lo", prompt=70, output=3)) as server:
        models = added("ollama", server.origin, "qwen3:8b", context_window=9_000)
        image = BinaryContent(b"png", media_type="image/png")
        answer = await ask(models, [*TALK, ModelRequest(parts=[UserPromptPart(["And this?", image])])], tools=[TOOL])
        await models.aclose()
    assert answer.parts == [TextPart("Hello")]
    assert (answer.usage.input_tokens, answer.usage.output_tokens) == (70, 3)
    [request] = server.requests
    assert request.path == "/api/chat"
    assert request.body["options"] == {"num_ctx": 9_000, "num_predict": 2_250}
    assert request.body["messages"][1:] == [
        {"role": "assistant", "content": "", "tool_calls": [{"function": {"name": "look", "arguments": {}}}]},
        {"role": "tool", "content": "A cat.", "tool_name": "look"},
        {"role": "user", "content": "And this?", "images": ["cG5n"]},
    ]


async def test_ollamas_calls_and_thinking_are_read(added):
    lines = [
        {"thinking": "Hm."},
        {"tool_calls": [{"function": {"name": "look", "arguments": {"at": 1}}}]},
        {"tool_calls": [{"function": {"name": "look", "arguments": {"at": 2}}}]},
    ]
    async with ollama_server.ollama(ollama_server.answer(*lines)) as server:
        models = added("ollama", server.origin, "qwen3:8b", context_window=9_000)
        answer = await ask(models, tools=[TOOL])
        await models.aclose()
    assert isinstance(answer.parts[0], ThinkingPart)
    assert [part.args_as_dict() for part in answer.parts if isinstance(part, ToolCallPart)] == [{"at": 1}, {"at": 2}]


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        pytest.param(refuse(404, {"error": "model 'x' not found"}), "model 'x' not found (HTTP 404)", id="404"),
        pytest.param(raw(b'{"error": "out of memory"}\n'), "out of memory", id="in the stream"),
    ],
)
async def test_ollamas_errors_are_said_in_its_words_and_our_name(added, answer, words):
    async with ollama_server.ollama(answer) as server:
        models = added("ollama", server.origin, "qwen3:8b", context_window=9_000)
        with pytest.raises(ModelFailed) as caught:
            await ask(models)
        await models.aclose()
    assert "The model 'mine'" in caught.value.message  # as it was written
    assert words in caught.value.message


@pytest.mark.parametrize(
    ("server", "window"),
    [
        pytest.param(ollama_server.ollama(own=40_960), 16_384, id="not more than fits beside most models"),
        pytest.param(ollama_server.ollama(own=8_192), 8_192, id="the model's own"),
        pytest.param(ollama_server.ollama(own=40_960, parameters="num_ctx 32768"), 32_768, id="set in its Modelfile"),
        pytest.param(ollama_server.ollama(own=40_960, loaded=4_096), 4_096, id="in force now"),
    ],
)
async def test_the_window_of_a_model_at_ollama_is_asked_for(added, server, window):
    async with server:
        models = added("ollama", server.origin, "qwen3:8b")
        await models.prepare("mine")
        assert models.abilities("mine").context_window == window
        await models.aclose()


@pytest.mark.parametrize(
    ("provider", "routes", "window"),
    [
        pytest.param(
            "vllm",
            {"GET /v1/models": listing({"id": "m", "owned_by": "vllm", "max_model_len": 7_000})},
            7_000,
            id="vLLM",
        ),
        pytest.param(
            "llamacpp",
            {
                "GET /v1/models": listing({"id": "m", "owned_by": "llamacpp", "meta": {"n_ctx_train": 131_072}}),
                "GET /props": json_of({"default_generation_settings": {"n_ctx": 6_000}}),
            },
            6_000,
            id="llama.cpp",
        ),
        pytest.param(
            "lmstudio",
            {
                "GET /api/v0/models": listing(
                    {"id": "m", "type": "llm", "max_context_length": 131_072, "loaded_context_length": 5_000}
                )
            },
            5_000,
            id="LM Studio",
        ),
        pytest.param(
            "lmstudio",
            {"GET /api/v0/models": listing({"id": "m", "type": "llm", "max_context_length": 131_072})},
            4_096,
            id="LM Studio, not loaded",
        ),
    ],
)
@pytest.mark.parametrize("is_named", [True, False], ids=["by name", "as an openai-chat endpoint"])
async def test_the_window_of_a_local_server_is_asked_for(added, provider, routes, window, is_named):
    if provider == "lmstudio":
        routes = routes | {"GET /v1/models": listing({"id": "m", "owned_by": "organization_owner"})}
    async with OpenAIServer(routes=routes) as server:
        models = added(provider if is_named else "openai-chat", server.base_url)
        assert models.abilities("mine").context_window == 128_000
        await models.prepare("mine")
        assert (models.abilities("mine").context_window, models.abilities("mine").is_window_known) == (window, True)
        await models.aclose()


async def test_ollama_behind_its_compatible_api_has_the_default_window():
    async with ollama_server.ollama(own=40_960) as server:
        models = Models("openai-chat:qwen3:8b", base_url=server.base_url, clock=ManualClock(NOON))
        await models.prepare()
        assert models.context_window() == 4_096
        await models.aclose()


def test_the_librarys_providers_are_all_in_our_table():
    """Names that pydantic-ai would refuse are not accepted at save; names that it knows are."""
    for name in sorted(LIBRARY_PROVIDERS):
        with contextlib.suppress(ImportError):  # it is known, and its package is not installed
            infer_provider_class(name)


# ── Lists ───────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_the_lists_of_providers_are_read(monkeypatch):
    anthropic = {"data": [{"id": "claude-x", "display_name": "Claude X", "max_input_tokens": 200_000}]}
    bedrock = {
        "modelSummaries": [
            {"modelId": "anthropic.claude-x-v1:0", "modelName": "Claude X", "outputModalities": ["TEXT"]},
            {"modelId": "stability.image", "outputModalities": ["IMAGE"]},
        ]
    }
    mistral = {
        "id": "mistral-x",
        "max_context_length": 131_072,
        "capabilities": {"completion_chat": True, "function_calling": True, "vision": False},
    }
    groq = {"id": "llama-x", "context_window": 131_072, "max_completion_tokens": 32_768}
    routes = {
        "GET /v1/models?limit=1000": json_of(anthropic),
        "GET /foundation-models": json_of(bedrock),
        "GET /v1/models": listing(mistral, groq, {"id": "embed", "capabilities": {"completion_chat": False}}),
    }
    async with OpenAIServer(routes=routes) as server, google_server.google() as google:
        [found] = await lists.list_models(PROVIDERS["anthropic"], server.origin, KEY)
        assert (found.id, found.label, found.context_window) == ("claude-x", "Claude X", 200_000)
        assert server.lookups[-1].headers["x-api-key"] == KEY
        [found] = await lists.list_models(PROVIDERS["bedrock"], server.origin, KEY)
        assert found.id == "anthropic.claude-x-v1:0"
        llama, magistral = await lists.list_models(PROVIDERS["mistral"], server.base_url, KEY)
        assert (llama.context_window, llama.output_limit) == (131_072, 32_768)
        assert (magistral.has_tools, magistral.images) == (True, False)
        [found] = await lists.list_models(PROVIDERS["google"], google.origin, KEY)
        assert (found.id, found.output_limit) == ("gemini-x", 65_536)
        assert google.lookups[-1].headers["x-goog-api-key"] == KEY
        assert await lists.list_models(PROVIDERS["azure"], server.origin, KEY) == []
        # A region's prefix is not part of the id in the list.
        assert (await lists.inspect(PROVIDERS["bedrock"], server.origin, KEY, "us.anthropic.claude-x-v1:0")).label


async def test_an_alias_that_is_not_in_the_list_is_looked_up_by_itself():
    routes = {
        "GET /v1/models?limit=1000": json_of({"data": [{"id": "claude-x-20260101"}]}),
        "GET /v1/models/claude-x": json_of({"id": "claude-x-20260101"}),
    }
    async with OpenAIServer(routes=routes) as server:
        assert (await lists.inspect(PROVIDERS["anthropic"], server.origin, KEY, "claude-x")).id == "claude-x"
        with pytest.raises(ModelNotListed, match="nearest is 'claude-x-20260101'"):
            await lists.inspect(PROVIDERS["anthropic"], server.origin, KEY, "claude-y")


# ── Tests of models ─────────────────────────────────────────────────────────────────────────────────────────────────

AS_TEXT = '<tool_call>{"name": "report_ready", "arguments": {"word": "ready"}}</tool_call>'


@pytest.mark.parametrize(
    ("script", "tools", "words"),
    [
        pytest.param([calls(*call("report_ready", '{"word": "ready"}'))], "native", "calls tools", id="native"),
        pytest.param([say(AS_TEXT)], "none", "as text, which is not made", id="as text"),
        pytest.param([say("ready")], "none", "did not call", id="not at all"),
        pytest.param([refuse(400, "no tools"), say("ready")], "none", "did not call", id="refused by the server"),
    ],
)
async def test_a_test_says_how_a_model_calls_tools(added, script, tools, words):
    async with OpenAIServer(*script) as server:
        models = added("openai-chat", server.base_url)
        trial = await ModelTests(models).test("mine")
        await models.aclose()
    assert (trial.outcome, trial.tool_calls) == ("answered", tools)
    assert words in trial.tools_note


@pytest.mark.parametrize(
    ("answer", "problem", "words"),
    [
        pytest.param(refuse(401, "Wrong key."), "key", "Wrong key. (HTTP 401)", id="wrong key"),
        pytest.param(refuse(404, "The model `m` does not exist"), "model", "does not exist", id="wrong model"),
        pytest.param(refuse(404, "Not Found"), "address", "Not Found (HTTP 404)", id="wrong path"),
        pytest.param(
            refuse(429, {"error": {"message": "You are out of credit.", "code": "insufficient_quota"}}),
            "quota",
            "out of credit",
            id="quota",
        ),
        pytest.param(refuse(402, "Insufficient Balance"), "quota", "Insufficient Balance", id="no balance"),
        pytest.param(refuse(503, "Overloaded"), "busy", "Overloaded", id="busy"),
        pytest.param(refuse(400, "Bad request."), "refused", "Bad request.", id="refused"),
    ],
)
async def test_a_test_says_what_is_wrong_in_words(added, answer, problem, words):
    async with OpenAIServer(answer) as server:
        models = added("groq", server.base_url, key=KEY)
        trial = await ModelTests(models).test("mine")
        await models.aclose()
    assert (trial.outcome, trial.problem) == ("failed", problem)
    assert words in (trial.reason or "")
    assert "'mine'" in (trial.reason or "")
    assert KEY not in (trial.reason or "")


async def test_a_test_waits_for_a_model_that_is_loading(added, monkeypatch):
    monkeypatch.setattr("wakeful.models.trials.LOADING_PAUSE", 0.01)
    loading = refuse(503, {"error": {"code": 503, "message": "Loading model", "type": "unavailable_error"}})
    async with OpenAIServer(loading, loading, say("ready")) as server:
        models = added("llamacpp", server.base_url)
        trial = await ModelTests(models).test("mine")
        await models.aclose()
    assert trial.outcome == "answered"
