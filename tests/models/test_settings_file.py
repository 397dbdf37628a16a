"""Models in the settings file."""

import pytest

from wakeful.config.settings import ConfigError, load_settings, secrets_of

FULL = """
[models.local]
provider = "ollama"
model = "qwen3:8b"
context_window = 32768

[models.cloud]
provider = "anthropic"
model = "claude-x"
key = { env = "MY_KEY" }
input_price = 3
output_price = 15.5
tool_calls = "native"
"""


def load(folder, text, **environ):
    (folder / "wakeful.toml").write_text(text)
    return load_settings({"WAKEFUL_CONFIG_DIR": str(folder), **environ})


def test_models_of_the_file_have_their_own_keys(tmp_path):
    settings = load(tmp_path, FULL, MY_KEY="sk-1")
    local, cloud = settings.models["local"], settings.models["cloud"]
    assert (local.address, local.context_window, local.key) == ("http://127.0.0.1:11434", 32_768, None)
    assert (cloud.address, cloud.key, cloud.output_price) == ("https://api.anthropic.com", "sk-1", 15.5)
    assert "sk-1" in secrets_of(settings)
    assert "sk-1" not in repr(settings)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('[models.a]\nprovider = "olama"\nmodel = "x"', "the nearest is 'ollama'"),
        ('[models.a]\nprovider = "ollama"', "`model` is missing"),
        ('[models.a]\nprovider = "ollama"\nmodel = "x"\nwindow = 1', "the nearest is 'context_window'"),
        ('[models.demo]\nprovider = "ollama"\nmodel = "x"', "is reserved"),
        ('[models.a]\nprovider = "anthropic"\nmodel = "x"', "Anthropic needs a key"),
        ('[models.a]\nprovider = "anthropic"\nmodel = "x"\nkey = { env = "NOWHERE" }', "'NOWHERE' is not set"),
        ('[models.a]\nprovider = "ollama"\nmodel = "x"\naddress = "http://169.254.169.254"', "link-local"),
        ('[models.a]\nprovider = "ollama"\nmodel = "x"\ncontext_window = true', "`context_window` is a number"),
        ('[models.a]\nprovider = "ollama"\nmodel = "x"\ntool_calls = "maybe"', "one of native, none"),
        ("models = 1", "`models` is not a table"),
        ('model = "antropic:claude-x"', "did you mean 'anthropic:claude-x'?"),
    ],
)
def test_a_wrong_entry_is_refused_at_the_start(tmp_path, text, words):
    with pytest.raises(ConfigError) as caught:
        load(tmp_path, text)
    assert words in str(caught.value)


def test_the_environment_has_no_models(tmp_path):
    with pytest.raises(ConfigError, match="WAKEFUL_MODELS"):
        load_settings({"WAKEFUL_CONFIG_DIR": str(tmp_path), "WAKEFUL_MODELS": "x"})
