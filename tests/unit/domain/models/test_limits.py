"""The output limit that is sent when nobody has set one."""

import pytest

from wakeful.domain.models.limits import output_limit


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
