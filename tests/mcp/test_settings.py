"""MCP servers in the settings file: validation, and no secret in a message."""

import pytest

from wakeful.config.settings import ConfigError, load_settings
from wakeful.core.labels import BUILT_IN, ambiguous_names, may_be_of, plain_name, tool_name
from wakeful.mcp.rules import McpServer, hide_secrets
from wakeful.mcp.servers import _describe

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
        ('[mcp.x]\nurl = "https://me:s3cret#@a"\n', "without user name"),
        ('[mcp.x]\nurl = "https://me:s3cret\uff03@a"\n', "without user name"),
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


@pytest.mark.parametrize(
    ("server", "tool", "name"),
    [
        ("weather", "forecast", "weather_forecast"),
        ("weather", "get.it now", "weather_get_it_now"),
        ("db", "query", "mcp_db_query"),
        ("db", "Query", "mcp_db_Query"),  # a provider may not tell upper from lower case
        ("mcp", "query", "mcp_query"),
        ("mcp", "db_query", "mcp_mcp_db_query"),
        ("mcp", "mcp_db_query", "mcp_mcp_mcp_db_query"),
        ("more", "tools", "mcp_more_tools"),
    ],
)
def test_a_tool_has_a_name_of_its_own(server, tool, name):
    assert tool_name(server, tool) == name
    assert name not in BUILT_IN
    assert plain_name(name) in (name, f"{server}_{tool}")
    assert may_be_of([server], name)
    assert not may_be_of(["other"], name)


def test_no_two_servers_have_the_same_name_for_a_tool():
    names = [name for each in BUILT_IN for name in (each, f"mcp_{each}", f"mcp_mcp_{each}")]
    pairs = {(server, tool) for name in names for server, _, tool in [name.partition("_")] if tool}
    made = [tool_name(server, tool) for server, tool in pairs]
    assert len(set(made)) == len(made) > 2 * len(BUILT_IN)
    assert not BUILT_IN & set(made)


def test_a_built_in_name_is_of_no_server_and_was_ambiguous_with_one():
    assert not may_be_of(["db"], "db_query")
    assert "db_query" in ambiguous_names(["db"])
    assert ambiguous_names(["weather"]) == []
    assert "mcp_db_query" in ambiguous_names(["mcp"])


PROGRAM = McpServer(name="a", command=("run", "--key=s3cret-value", "two  s3cret words"), env={"KEY": "s3cret-env"})
ADDRESS = McpServer(
    name="a", url="https://example.com/mcp?key=s3cret", headers={"Authorization": "Bearer s3cret-header"}
)

BRIDGE = McpServer(
    name="a",
    command=("mcp-remote", "https://h/sse?key=s3cret-query&team=1", "--header", "Authorization: Bearer s3cret-token"),
    env={"DATABASE_URL": "postgresql://me:s3cret-password@db/x"},
)


@pytest.mark.parametrize(
    ("server", "text"),
    [
        (PROGRAM, "bad argument --key=s3cret-value"),
        (PROGRAM, "bad key 's3cret-value'"),
        (PROGRAM, "bad: two  s3cret words"),
        (PROGRAM, "bad: s3cret-env"),
        (ADDRESS, "404 at https://example.com/mcp?key=s3cret"),
        (ADDRESS, "no token s3cret-header"),
        (BRIDGE, "{ Authorization: 'Bearer s3cret-token' }"),
        (BRIDGE, "token s3cret-token refused"),
        (BRIDGE, "key s3cret-query refused"),
        (BRIDGE, "password s3cret-password refused"),
    ],
)
def test_no_part_of_a_secret_is_shown(server, text):
    assert "s3cret" not in hide_secrets(text, server)
    for length in (0, 280, 290, 295):  # an error is cut, but not in the middle of a secret
        assert "s3" not in _describe(ValueError("x" * length + text), server)
