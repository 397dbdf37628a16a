"""The output limit that is sent when nobody has set one."""

import pytest

from wakeful.models.by_name import largest_output, output_limit


@pytest.mark.parametrize(
    ("model", "window", "limit"),
    [
        pytest.param("qwen3:8b", 128_000, 8_192, id="a large window"),
        pytest.param("qwen3:8b", 4_096, 1_024, id="a quarter of a small window"),
        pytest.param("tiny", 500, 256, id="never so little that nothing can be said"),
        pytest.param("gpt-4-turbo", 128_000, 4_096, id="accepts less"),
        pytest.param("gpt-5-mini", 400_000, 32_768, id="thinks first"),
        pytest.param("openai/gpt-5", 400_000, 32_768, id="behind a router"),
    ],
)
def test_the_output_limit_fits_the_model_and_its_window(model, window, limit):
    assert output_limit(model, window) == limit


@pytest.mark.parametrize(
    ("model", "limit"),
    [
        pytest.param("claude-sonnet-4-5", 64_000, id="the model's own, though it is more than a quarter"),
        pytest.param("claude-opus-4-1", 32_000, id="an older one"),
        pytest.param("us.anthropic.claude-3-5-sonnet-20240620-v1:0", 8_192, id="with a region and a maker"),
        pytest.param("us.meta.llama3-1-8b-instruct-v1:0", 2_048, id="accepts less"),
        pytest.param("a-new-one", 8_192, id="unknown"),
    ],
)
def test_a_model_of_a_library_is_sent_its_own_limit(model, limit):
    assert largest_output(model, 200_000) == limit
