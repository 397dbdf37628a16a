import asyncio
import subprocess
import sys
from datetime import UTC, datetime

import pytest
from pydantic_ai.exceptions import ModelHTTPError
from pydantic_ai.messages import ModelRequest, TextPart
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.usage import RequestUsage

import openai_server
from wakeful.core.clock import ManualClock
from wakeful.models.by_name import Models
from wakeful.models.demo import DemoModel
from wakeful.models.errors import ProviderMissing
from wakeful.models.names import NoSuchModel
from wakeful.models.openai_chat import OpenAIChat
from wakeful.models.providers import PROVIDERS
from wakeful.models.rules import ModelKeyMissing

NOON = datetime(2026, 3, 2, 12, 0, tzinfo=UTC)
LOCAL = "http://127.0.0.1:1/v1"


@pytest.fixture(autouse=True)
def no_keys_of_the_machine(monkeypatch):
    for provider in PROVIDERS.values():
        for name in (*provider.key_variables, provider.address_variable or "OPENAI_API_VERSION"):
            monkeypatch.delenv(name, raising=False)


@pytest.fixture
def clock():
    return ManualClock(NOON)


def test_no_provider_sdk_is_imported_at_start():
    sdks = ["openai", "anthropic", "google", "mcp"]
    script = f"import sys, wakeful.models.by_name as p; p.Models(); print([s for s in {sdks} if s in sys.modules])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


async def test_the_default_answers_for_agents_that_name_none(clock):
    models = Models("openai-chat:small", base_url=LOCAL, clock=clock)
    assert models.resolve(None) is models.resolve("openai-chat:small")
    assert models.resolve("").model_name == "small"
    assert isinstance(models.resolve("demo"), DemoModel)
    assert await models.load() is models.resolve()
    await models.aclose()


async def test_models_of_one_endpoint_share_its_connections(clock):
    async with openai_server.OpenAIServer(openai_server.say("One"), openai_server.say("Two")) as server:
        models = Models("openai-chat:a", base_url=server.base_url, api_key="k-1", clock=clock)
        for name in ("openai-chat:a", "openai-chat:b"):
            model = models.resolve(name)
            await model.request([ModelRequest.user_text_prompt("Hi")], None, ModelRequestParameters())
            await asyncio.sleep(0.005)  # the last bytes of the answer
        await models.aclose()
        assert [request.headers["authorization"] for request in server.requests] == ["Bearer k-1"] * 2
        assert {request.connection for request in server.requests} == {1}
        assert [request.body["model"] for request in server.requests] == ["a", "b"]


@pytest.mark.parametrize("name", ["gpt", "test", "nobody:x", "openai-chat:", ":x", "anthropic:", "demo:x"])
def test_an_unknown_name_is_refused_and_never_another_model(name, clock):
    with pytest.raises(NoSuchModel) as caught:
        Models("demo", base_url=LOCAL, clock=clock).resolve(name)
    assert repr(name) in caught.value.message


def test_a_near_miss_gets_a_suggestion(clock):
    with pytest.raises(NoSuchModel, match="did you mean 'anthropic:claude"):
        Models(clock=clock).resolve("antropic:claude-sonnet-4-5")


def test_openai_itself_needs_a_key_and_a_local_server_does_not(clock):
    with pytest.raises(ModelKeyMissing, match="WAKEFUL_MODEL_BASE_URL"):
        Models("openai-chat:gpt-5", clock=clock).resolve()
    assert isinstance(Models("openai-chat:gpt-5", base_url=LOCAL, clock=clock).resolve(), OpenAIChat)
    assert isinstance(Models("openai-chat:gpt-5", api_key="k", clock=clock).resolve(), OpenAIChat)


def test_a_missing_key_names_what_to_set(clock):
    for name, variable in (
        ("anthropic:claude-sonnet-4-5", "ANTHROPIC_API_KEY"),
        ("openai:gpt-5", "OPENAI_API_KEY"),
        ("openai-responses:gpt-5", "OPENAI_API_KEY"),
        ("google:gemini-x", "GOOGLE_API_KEY"),
        ("groq:llama-x", "GROQ_API_KEY"),
        ("azure:mine", "AZURE_OPENAI_ENDPOINT"),
        ("together:x", "TOGETHER_API_KEY"),
    ):
        with pytest.raises(ModelKeyMissing, match=variable) as caught:
            Models(clock=clock).resolve(name)
        assert repr(name) in caught.value.message  # as it was written
        for advice in ("Pydantic AI", "Provider(", "api_key="):
            assert advice not in caught.value.message


def test_a_missing_package_names_what_to_install(clock):
    with pytest.raises(ProviderMissing, match="the package 'cohere'") as caught:
        Models(clock=clock).resolve("cohere:command")
    assert "pydantic" not in caught.value.message


async def test_the_stored_key_serves_the_provider_of_the_default_model(clock):
    models = Models("anthropic:claude-sonnet-4-5", api_key="k-1", clock=clock)
    assert models.resolve("anthropic:claude-haiku-4-5").client.api_key == "k-1"
    assert models.resolve() is models.resolve()
    await models.aclose()


async def test_a_providers_own_variable_wins_over_the_stored_key(clock, monkeypatch):
    monkeypatch.setenv("ANTHROPIC_API_KEY", "own")
    models = Models("anthropic:claude-sonnet-4-5", api_key="k-1", clock=clock)
    assert models.resolve().client.api_key == "own"
    await models.aclose()


def test_the_stored_key_never_goes_to_another_provider(clock):
    models = Models("openai-chat:small", base_url=LOCAL, api_key="k-1", clock=clock)
    for other in ("anthropic:claude-sonnet-4-5", "openai:gpt-5"):
        with pytest.raises(ModelKeyMissing):
            models.resolve(other)


@pytest.mark.parametrize(
    ("default", "own", "key"),
    [
        pytest.param("openai-chat:small", None, "Bearer k-1", id="the key was set for it"),
        pytest.param("demo", None, "Bearer k-1", id="the demo model has no provider, so the key is the endpoint's"),
        pytest.param("anthropic:claude-sonnet-4-5", None, None, id="the key was set for another provider"),
        pytest.param("anthropic:claude-sonnet-4-5", "sk-openai", None, id="OpenAI's key is not for compatible ones"),
    ],
)
async def test_an_endpoint_gets_only_the_key_that_was_meant_for_it(default, own, key, clock, monkeypatch):
    if own:
        monkeypatch.setenv("OPENAI_API_KEY", own)
    async with openai_server.OpenAIServer(openai_server.say("Hi")) as server:
        models = Models(default, base_url=server.base_url, api_key="k-1", clock=clock)
        model = models.resolve("openai-chat:small")
        response = await model.request([ModelRequest.user_text_prompt("Hi")], None, ModelRequestParameters())
        await models.aclose()
        assert response.parts == [TextPart("Hi")]
        assert server.requests[0].headers.get("authorization") == key


def test_the_context_window_is_known_or_the_default(clock):
    models = Models("anthropic:claude-sonnet-4-5", clock=clock)
    assert models.context_window() == 200_000
    assert models.context_window("openai-chat:gpt-5") == 400_000
    assert models.context_window("nobody:x") == 128_000
    assert Models(window=9_000).context_window("demo") == 9_000


def test_prices_are_whole_millionths_of_a_dollar_or_unknown(clock):
    usage = RequestUsage(input_tokens=1000, output_tokens=10)
    models = Models(clock=clock)
    assert models.price("openai:gpt-5", usage, at=NOON) == 1350
    assert models.price("openai-chat:gpt-5", usage, at=NOON) == 1350
    assert models.price("nobody:x", usage) is None
    assert models.price("demo", usage) == 0
    assert Models(base_url=LOCAL, clock=clock).price("openai-chat:gpt-5", usage) is None


def test_the_key_is_hidden_in_what_a_stock_model_says(clock):
    models = Models("anthropic:x", api_key="k-1", clock=clock)
    meaning = models.translate(ModelHTTPError(401, "x", {"message": "Bad key k-1"}))
    assert meaning is not None
    assert "k-1" not in meaning.message
