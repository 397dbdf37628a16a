"""Names of models as people write them."""

import pytest

from wakeful.models.names import NoSuchModel, check_written, is_provider
from wakeful.models.rules import check_name, suggest_name


@pytest.mark.parametrize(
    "written", ["demo", "anthropic:claude-x", "openai-chat:a", "cohere:b", "gateway/openai:c", "mine"]
)
def test_a_known_name_or_provider_is_accepted(written):
    check_written(written, ["mine"])


@pytest.mark.parametrize(
    ("written", "nearest"),
    [
        ("antropic:claude-sonnet-4-5", "did you mean 'anthropic:claude-sonnet-4-5'?"),
        ("lm-studio:qwen", "did you mean 'lmstudio:qwen'?"),
        ("grok:grok-4", "did you mean 'xai:grok-4'?"),
        ("mein", "did you mean 'mine'?"),
        ("dmeo", "did you mean 'demo'?"),
        ("ollama", "did you mean 'ollama:qwen3:8b'?"),
        ("ollama:", "the name of the model is missing after 'ollama'"),
    ],
)
def test_a_wrong_name_is_refused_as_it_was_written_with_the_nearest(written, nearest):
    with pytest.raises(NoSuchModel) as caught:
        check_written(written, ["mine", "other"])
    assert f"There is no model {written!r}" in caught.value.message
    assert nearest in caught.value.message


def test_an_empty_gateway_is_not_a_provider():
    assert is_provider("gateway/anything")
    assert not is_provider("gateway/")


@pytest.mark.parametrize(
    ("model", "name"), [("qwen3:8b", "qwen3-8b"), ("meta/Llama 3.3", "llama-3.3"), ("test", "test-model"), ("x", "x-2")]
)
def test_a_name_is_made_from_the_id_at_the_provider(model, name):
    assert suggest_name(model, ["x"]) == name
    assert check_name(name) == name
