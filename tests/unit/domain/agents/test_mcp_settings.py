"""MCP servers in the settings file: validation, and no secret in a message."""

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
        ('[mcp.x]\ncommand = ["a"]\nread = "/srv"\n', "`read` is a list of absolute paths"),
        ('[mcp.x]\ncommand = ["a"]\nwrite = ["notes"]\n', "`write` is a list of absolute paths"),
        ('[mcp.x]\ncommand = ["a"]\nnetwork = "yes"\n', "`network` is true or false"),
        ('[mcp.x]\ncommand = ["a"]\nnetwork = true\nunconfined = true\n', "exclude each other"),
        ('[mcp.x]\nurl = "https://a"\nread = ["/srv"]\n', "`read` belongs to a server with a command"),
    ],
)
def test_a_table_that_cannot_be_used_is_refused_with_the_reason_and_without_its_secrets(tmp_path, table, problem):
    with pytest.raises(ConfigError, match="mcp") as refused:
        load(tmp_path, table)
    [said] = refused.value.problems
    assert problem in said
    assert "s3cret" not in said
    assert "wakeful.toml" in said


@pytest.mark.parametrize(
    ("lines", "is_limited"),
    [
        ("", None),
        ('read = ["/srv"]', True),
        ("write = []", True),
        ("network = false", True),
        ("unconfined = true", False),
        ("unconfined = false", True),
    ],
)
def test_an_entry_says_what_its_program_reaches_or_that_it_is_unconfined(tmp_path, lines, is_limited):
    settings = load(tmp_path, f'[mcp.x]\ncommand = ["a"]\n{lines}\n')
    assert settings.mcp["x"].is_limited is is_limited


def test_what_a_program_reaches_is_read_with_the_home_directory_filled_in(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", "/home/ada")
    lines = 'read = ["~/notes", "/srv"]\nwrite = ["/srv/out"]\nnetwork = true\n'
    server = load(tmp_path, f'[mcp.x]\ncommand = ["a"]\n{lines}').mcp["x"]
    assert (server.read, server.write, server.network) == (("/home/ada/notes", "/srv"), ("/srv/out",), True)


@pytest.mark.parametrize("path", ["{folder}", "{folder}/config", "{folder}/config/token", "{folder}/data", "/"])
@pytest.mark.parametrize(
    "line",
    ['[mcp.x]\ncommand = ["a"]\nread = ["{}"]', '[mcp.x]\ncommand = ["a"]\nwrite = ["{}"]', 'shell_read = ["{}"]'],
)
def test_no_program_is_given_the_servers_own_directories(tmp_path, line, path):
    (tmp_path / "config").mkdir()
    named = path.format(folder=tmp_path)
    text = f'data_dir = "{tmp_path}/data"\n' + line.format(named)
    with pytest.raises(ConfigError, match="contains the server's own directory"):
        load(tmp_path / "config", text)


def test_a_directory_beside_the_servers_own_can_be_given(tmp_path):
    (tmp_path / "config").mkdir()
    text = f'data_dir = "{tmp_path}/data"\nshell_read = ["{tmp_path}/tools"]\nshell_network = true\n'
    settings = load(tmp_path / "config", text)
    assert (settings.shell_read, settings.shell_network) == ((tmp_path / "tools",), True)


@pytest.mark.parametrize("name", ["shell_network", "shell_read", "shell_unconfined"])
def test_what_commands_reach_is_set_in_the_file_alone(tmp_path, name):
    with pytest.raises(ConfigError, match=f"{name} can only be set in wakeful.toml"):
        load(tmp_path, "", **{f"WAKEFUL_{name.upper()}": "true"})


def test_servers_are_not_taken_from_the_environment(tmp_path):
    with pytest.raises(ConfigError, match="mcp takes tables") as refused:
        load(tmp_path, "", WAKEFUL_MCP='{"x": {"command": ["s3cret"]}}')
    assert "s3cret" not in str(refused.value)
