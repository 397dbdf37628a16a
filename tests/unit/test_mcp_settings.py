"""MCP servers in the settings file: what a table may say, and that no message says a secret."""

import pytest

from wakeful.config import ConfigError, load_settings

GOOD = """
[mcp.files]
command = ["uvx", "files-mcp", "--root", "/srv"]
env = { UNITS = "metric", KEY = { file = "secrets/key" }, OTHER = { env = "THE_OTHER" } }

[mcp.weather]
url = "https://weather.example.org/mcp"
headers = { Authorization = { env = "WEATHER_AUTH" } }
for_users = true
"""


def load(folder, text, **environ):
    (folder / "wakeful.toml").write_text(text)
    return load_settings({"WAKEFUL_CONFIG_DIR": str(folder)} | environ)


def test_servers_are_read_with_their_secrets(tmp_path):
    (tmp_path / "secrets").mkdir()
    (tmp_path / "secrets/key").write_text("k-123\n")
    settings = load(tmp_path, GOOD, THE_OTHER="o-456", WEATHER_AUTH="Bearer w-789")
    files, weather = settings.mcp["files"], settings.mcp["weather"]
    assert (files.kind, files.command, files.for_users) == ("stdio", ("uvx", "files-mcp", "--root", "/srv"), False)
    assert files.env == {"UNITS": "metric", "KEY": "k-123", "OTHER": "o-456"}
    assert (weather.kind, weather.url, weather.for_users) == ("http", "https://weather.example.org/mcp", True)
    assert weather.headers == {"Authorization": "Bearer w-789"}
    shown = repr(settings)
    assert not [secret for secret in ("k-123", "o-456", "w-789", "uvx", "example") if secret in shown]


@pytest.mark.parametrize(
    ("table", "problem"),
    [
        ("[mcp.x]\n", "exactly one of `command`"),
        ('[mcp.x]\ncommand = ["a"]\nurl = "https://a"\n', "exactly one of `command`"),
        ('[mcp.x]\ncommand = "a b"\n', "`command` is a list of texts"),
        ("[mcp.x]\ncommand = []\n", "`command` is a list of texts"),
        ('[mcp.x]\nurl = "file:///etc"\n', "http:// or https://"),
        ('[mcp.x]\nurl = "https://me:s3cret@a"\n', "without user name"),
        ('[mcp.x]\ncomand = ["a"]\n', "the nearest is 'command'"),
        ('[mcp.x]\ncommand = ["a"]\nheaders = { A = "s3cret" }\n', "`headers` belongs to a server with a url"),
        ('[mcp.x]\ncommand = ["a"]\nenv = { "A B" = "s3cret" }\n', "'A B' cannot be a name"),
        ('[mcp.x]\ncommand = ["a"]\nenv = { A = { file = "gone" } }\n', "'gone' cannot be read"),
        ('[mcp.x]\ncommand = ["a"]\nenv = { A = { env = "GONE" } }\n', "'GONE' is not set"),
        ('[mcp.x]\ncommand = ["a"]\nenv = { A = { word = "s3cret" } }\n', "is a text, { file"),
        ('[mcp.x]\nurl = "https://a"\nheaders = { A = "s3cret\\nB: c" }\n', "more than one line"),
        ('[mcp.X_1]\ncommand = ["a"]\n', "the name must be"),
        ("mcp = 1\n", "not a table"),
    ],
)
def test_a_table_that_cannot_be_used_is_refused_with_the_reason_and_without_its_secrets(tmp_path, table, problem):
    with pytest.raises(ConfigError, match="mcp") as refused:
        load(tmp_path, table)
    [said] = refused.value.problems
    assert problem in said
    assert "s3cret" not in said
    assert "wakeful.toml" in said


def test_servers_are_not_taken_from_the_environment(tmp_path):
    with pytest.raises(ConfigError, match="mcp takes tables") as refused:
        load(tmp_path, "", WAKEFUL_MCP='{"x": {"command": ["s3cret"]}}')
    assert "s3cret" not in str(refused.value)
