import runpy
from pathlib import Path

import pytest
from pydantic import ValidationError

from wakeful.config.settings import (
    ConfigError,
    Settings,
    describe_settings,
    find_risks,
    load_settings,
    read_headers,
    secrets_of,
)

ROOT = Path(__file__).parents[2]
KEY = "ab" * 32


@pytest.fixture
def config_dir(tmp_path: Path) -> Path:
    directory = tmp_path / "config"
    directory.mkdir()
    return directory


def load(config_dir: Path, toml: str = "", /, **environ: str) -> Settings:
    (config_dir / "wakeful.toml").write_text(toml)
    return load_settings({"WAKEFUL_CONFIG_DIR": str(config_dir), **environ})


def problems_of(config_dir: Path, toml: str = "", /, **environ: str) -> str:
    with pytest.raises(ConfigError) as caught:
        load(config_dir, toml, **environ)
    return str(caught.value)


def test_nothing_given_means_loopback_embedded_and_encrypted(tmp_path):
    settings = load_settings({"WAKEFUL_CONFIG_DIR": str(tmp_path / "nowhere")})
    assert (settings.host, settings.port) == ("127.0.0.1", 8420)
    assert settings.database_url is None
    assert settings.store_encryption


def test_directories_follow_the_platform_when_not_named():
    assert load_settings({}).data_dir.name == "wakeful"
    assert load_settings({}).config_dir.is_absolute()


def test_the_environment_wins_over_the_file(config_dir):
    settings = load(config_dir, "port = 1000\nmax_attempts = 7", WAKEFUL_PORT="2000")
    assert (settings.port, settings.max_attempts) == (2000, 7)


def test_the_command_line_wins_over_both(config_dir):
    (config_dir / "wakeful.toml").write_text("port = 1000")
    environ = {"WAKEFUL_CONFIG_DIR": str(config_dir), "WAKEFUL_PORT": "2000", "WAKEFUL_HOST": "localhost"}
    settings = load_settings(environ, port=3000, host=None)
    assert (settings.port, settings.host) == (3000, "localhost")


def test_a_config_directory_on_the_command_line_is_where_the_file_is_read(config_dir):
    (config_dir / "wakeful.toml").write_text("port = 1000")
    assert load_settings({"WAKEFUL_CONFIG_DIR": "/nowhere"}, config_dir=config_dir).port == 1000


def test_the_class_alone_reads_no_environment(monkeypatch):
    monkeypatch.setenv("WAKEFUL_PORT", "1")
    monkeypatch.setenv("PORT", "1")
    assert Settings().port == 8420


def test_the_real_environment_is_read_by_default(monkeypatch, config_dir):
    monkeypatch.setenv("WAKEFUL_CONFIG_DIR", str(config_dir))
    monkeypatch.setenv("WAKEFUL_PORT", "1234")
    assert load_settings().port == 1234


def test_an_empty_variable_counts_as_not_set(config_dir):
    assert load(config_dir, "port = 1000", WAKEFUL_PORT="", WAKEFUL_TOKEN=" ").port == 1000


def test_relative_paths_in_the_file_start_at_the_file(config_dir):
    assert load(config_dir, 'data_dir = "data"').data_dir == config_dir / "data"


def test_a_tilde_means_home(config_dir):
    assert load(config_dir, WAKEFUL_DATA_DIR="~/wakes").data_dir == Path.home() / "wakes"
    assert load(config_dir, 'data_dir = "~/wakes"').data_dir == Path.home() / "wakes"


def test_lists_are_separated_by_commas_in_the_environment(config_dir):
    settings = load(config_dir, WAKEFUL_HOST="0.0.0.0", WAKEFUL_ALLOWED_HOSTS="Wakeful.example.org, fd00::1")
    assert settings.allowed_hosts == ("wakeful.example.org", "fd00::1")


def test_an_unknown_name_in_the_file_names_the_nearest_and_the_file(config_dir):
    message = problems_of(config_dir, "max_attemps = 3")
    assert message == f"max_attemps ({config_dir / 'wakeful.toml'}) is not a setting; the nearest one is max_attempts."


def test_an_unknown_variable_names_the_nearest(config_dir):
    message = problems_of(config_dir, WAKEFUL_DATABSE_URL="x")
    assert message == "WAKEFUL_DATABSE_URL (the environment) is not a setting; the nearest one is WAKEFUL_DATABASE_URL."


@pytest.mark.parametrize("name", ["WAKEFUL_Port", "WAKEFUL_PORT_FILE", "WAKEFUL_", "WAKEFUL_XYZZY", "WAKEFUL_TESTS"])
def test_only_exact_names_are_settings(config_dir, name):
    assert "the nearest one is WAKEFUL_" in problems_of(config_dir, **{name: "1"})


def test_a_table_in_the_file_is_unknown_too(config_dir):
    assert "server (" in problems_of(config_dir, "[server]\nport = 1")


def test_variables_of_the_tests_and_of_others_are_left_alone(config_dir):
    load(config_dir, WAKEFUL_TEST_LONG="1", WAKEFULNESS="1", PORT="x")


def test_the_file_cannot_say_where_it_lies(config_dir):
    assert "set WAKEFUL_CONFIG_DIR instead" in problems_of(config_dir, 'config_dir = "/x"')


def test_a_wrong_value_is_shown_with_what_is_accepted(config_dir):
    message = problems_of(config_dir, WAKEFUL_PORT="http")
    assert message == "WAKEFUL_PORT = 'http' (the environment) is refused: port takes a whole number from 0 to 65535."


@pytest.mark.parametrize(
    ("toml", "accepts"),
    [
        pytest.param("port = 65536", "a whole number from 0 to 65535", id="over the bound"),
        pytest.param("port = true", "a whole number from 0 to 65535", id="true is not 1"),
        pytest.param("lease_seconds = 0", "a whole number from 1 to 3600", id="no lease at all"),
        pytest.param("lease_seconds = 1.5", "a whole number", id="a fraction"),
        pytest.param('log_format = "xml"', "one of text, json", id="not in the list"),
        pytest.param('log_level = "loud"', "one of debug, info, warning, error", id="no such level"),
        pytest.param('store_encryption = "perhaps"', "true or false", id="not a yes or no"),
        pytest.param('allowed_hosts = ["*"]', "without port or *", id="any host"),
        pytest.param('allowed_hosts = ["a.org:80"]', "without port or *", id="a port"),
        pytest.param('host = "http://x"', "a host name or an IP address", id="an address as host"),
        pytest.param('model = "two words"', "a provider string", id="model with a space"),
        pytest.param('model_base_url = "ftp://x"', "an http:// or https:// address", id="not the web"),
        pytest.param('model_base_url = "https://u:p@x"', "without user name or password", id="password in an address"),
        pytest.param("data_dir = 5", "a path", id="not a path"),
    ],
)
def test_wrong_values_are_refused(config_dir, toml, accepts):
    message = problems_of(config_dir, toml)
    assert accepts in message
    assert str(config_dir / "wakeful.toml") in message


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        pytest.param("WAKEFUL_DATABASE_URL", "mysql://hunter2@db", id="another database"),
        pytest.param("WAKEFUL_DATABASE_URL", "postgresql://me:hunter2#x@db/y", id="a password with #"),
        pytest.param("WAKEFUL_DATABASE_URL", "postgresql://me:hunter2/x@db/y", id="a password with /"),
        pytest.param("WAKEFUL_DEVICE_KEY", "hunter2", id="not hexadecimal"),
        pytest.param("WAKEFUL_DEVICE_KEY", "2222", id="a short key"),
        pytest.param("WAKEFUL_TOKEN", "hunter2 hunter2", id="a space"),
        pytest.param("WAKEFUL_MODEL_API_KEY", "hunter2\u00e4", id="not ASCII"),
    ],
)
def test_a_wrong_secret_is_refused_without_showing_it(config_dir, variable, value):
    message = problems_of(config_dir, **{variable: value})
    assert variable in message
    assert value not in message
    assert "hunter2" not in message


@pytest.mark.parametrize(
    "address",
    [
        "postgresql:///wakeful?host=/run/postgresql&user=me@x",
        "postgres://me:hunter2@[::1]:5432/x",
        "postgresql://me:hun%23ter2@a:5432,b:5433/x",
        "postgresql://a/x",
    ],
)
def test_every_form_of_an_address_of_postgresql_is_accepted(config_dir, address):
    assert load(config_dir, WAKEFUL_DATABASE_URL=address).database_url.get_secret_value() == address


@pytest.mark.parametrize("setting", ["model_base_url", "public_url", "otel_endpoint"])
@pytest.mark.parametrize(
    "address",
    ["https://me:hunter2@x", "https://hunter2@x", "https://me:hun#ter2@x", "ftp://me:hunter2/x@x", "me:hunter2@x"],
)
def test_an_address_is_refused_without_showing_the_password_in_it(config_dir, setting, address):
    message = problems_of(config_dir, f'{setting} = "{address}"')
    assert f"{setting} = " in message
    assert "•••@x" in message
    assert "hun" not in message
    assert "ter2" not in message


def test_an_address_is_refused_without_showing_the_key_in_it(config_dir):
    message = problems_of(config_dir, 'otel_endpoint = "https://example.org/v1?key=hunter2"')
    assert "otel_endpoint = 'https://example.org/v1?•••'" in message


def test_an_address_in_place_of_the_path_of_its_file_is_not_shown(config_dir):
    address = "postgresql://me:hunter2@db/wakeful"
    assert "hunter2" not in problems_of(config_dir, f'database_url_file = "{address}"')
    assert "hunter2" not in problems_of(config_dir, WAKEFUL_DATABASE_URL_FILE=address)


@pytest.mark.parametrize("variable", ["WAKEFUL_HEARTBEAT_URL", "WAKEFUL_HEARTBEAT_URL_FILE"])
def test_the_heartbeat_address_comes_from_the_file_alone(config_dir, variable):
    message = problems_of(config_dir, **{variable: "https://hunter2.example/x"})
    assert message == f"{variable} (the environment) is refused: heartbeat_url can only be set in wakeful.toml."


@pytest.mark.parametrize("address", ["ftp://hunter2", "https://me:hunter2@x", "https://x/hunter2#y", "hunter2"])
def test_a_wrong_heartbeat_address_is_refused_without_showing_it(config_dir, address):
    message = problems_of(config_dir, f'heartbeat_url = "{address}"')
    assert "heartbeat_url" in message
    assert "hunter2" not in message


@pytest.mark.parametrize("name", ["otel_endpoint", "otel_headers", "otel_headers_file", "otel_content"])
def test_traces_are_set_in_the_file_alone(config_dir, name):
    message = problems_of(config_dir, **{f"WAKEFUL_{name.upper()}": "x"})
    assert f"{name.removesuffix('_file')} can only be set in wakeful.toml" in message


@pytest.mark.parametrize(
    "address", ["ftp://host", "https://me:hunter2@host", "https://host/?key=hunter2", "localhost:4318", "http://host:0"]
)
def test_an_address_of_a_collector_with_a_key_in_it_is_refused(config_dir, address):
    assert "otel_endpoint" in problems_of(config_dir, f'otel_endpoint = "{address}"')


def test_headers_of_a_collector_are_read_and_hidden(config_dir):
    settings = load(config_dir, 'otel_headers = "Authorization=Bearer hunter2=, x-team = a"')
    headers = read_headers(settings.otel_headers.get_secret_value())
    assert headers == {"Authorization": "Bearer hunter2=", "x-team": "a"}
    assert "Bearer hunter2=" in secrets_of(settings)
    assert "hunter2" not in repr(settings)
    assert "hunter2" not in problems_of(config_dir, 'otel_headers = "hunter2"')


@pytest.mark.parametrize(("days", "is_accepted"), [(0, True), (30, False), (31, True), (3651, False), (-1, False)])
def test_runs_are_kept_for_a_month_at_least(config_dir, days, is_accepted):
    text = f"retention_runs_days = {days}\nretention_sessions_days = {days}"
    if is_accepted:
        assert load(config_dir, text).retention_runs_days == days
    else:
        assert "0, or a whole number from 31 to 3650" in problems_of(config_dir, text)


def test_every_problem_is_reported_at_once(config_dir):
    message = problems_of(config_dir, "prot = 1", WAKEFUL_PORT="x", WAKEFUL_LOG_FORMAT="y", WAKEFUL_TOKEN_FILE="/nope")
    assert len(message.splitlines()) == 4


def test_log_levels_may_be_shouted(config_dir):
    assert load(config_dir, WAKEFUL_LOG_LEVEL="DEBUG").log_level == "debug"


@pytest.mark.parametrize(
    "places",
    [
        pytest.param({"WAKEFUL_HOST": "0.0.0.0", "WAKEFUL_ALLOWED_HOSTS": "wakeful.example.org"}, id="other machines"),
        pytest.param({"WAKEFUL_ALLOWED_HOSTS": "wakeful.example.org"}, id="a proxy"),
    ],
)
def test_a_short_token_is_refused_where_other_machines_reach_the_server(config_dir, places):
    message = problems_of(config_dir, WAKEFUL_TOKEN="x" * 19, **places)
    assert "token has fewer than 20 characters" in message
    assert "x" * 19 not in message
    assert load(config_dir, WAKEFUL_TOKEN="x" * 20, **places).token is not None


def test_a_short_token_is_taken_on_loopback(config_dir):
    assert load(config_dir, WAKEFUL_TOKEN="x").has_short_token
    assert not load(config_dir).has_short_token


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.8.8", "::1", "localhost"])
def test_loopback_needs_no_allowed_hosts(config_dir, host):
    assert load(config_dir, WAKEFUL_HOST=host).host == host


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.5", "wakeful.example.org"])
def test_another_address_without_allowed_hosts_is_refused(config_dir, host):
    assert f"host {host!r} can be reached from other machines" in problems_of(config_dir, WAKEFUL_HOST=host)


def test_both_schemes_of_postgresql_are_taken(config_dir):
    for url in ("postgresql://u:p@h/db", "postgres://h/db"):
        settings = load(config_dir, WAKEFUL_DATABASE_URL=url)
        assert settings.database_url is not None
        assert settings.database_url.get_secret_value() == url


def test_secrets_come_from_files_without_the_space_around_them(config_dir, tmp_path):
    (tmp_path / "key").write_text(f"  {KEY}\n\n")
    (config_dir / "tok").write_text("from-the-file\n")
    settings = load(config_dir, 'token_file = "tok"', WAKEFUL_DEVICE_KEY_FILE=str(tmp_path / "key"))
    assert settings.device_key is not None
    assert settings.device_key.get_secret_value() == KEY
    assert settings.token is not None
    assert settings.token.get_secret_value() == "from-the-file"


def test_a_secret_file_in_the_environment_wins_over_the_file_unread(config_dir):
    (config_dir / "tok").write_text("good")
    settings = load(config_dir, 'token_file = "missing"', WAKEFUL_TOKEN_FILE=str(config_dir / "tok"))
    assert settings.token is not None
    assert settings.token.get_secret_value() == "good"


def test_both_forms_of_a_secret_are_refused(config_dir):
    message = problems_of(config_dir, WAKEFUL_TOKEN="a", WAKEFUL_TOKEN_FILE="/b")
    assert "WAKEFUL_TOKEN and WAKEFUL_TOKEN_FILE (the environment) give the same secret" in message


@pytest.mark.parametrize(
    ("content", "said"),
    [
        pytest.param(None, "cannot be read: No such file", id="missing"),
        pytest.param(b" \n", "is an empty file", id="empty"),
        pytest.param(b"\xff\xfe", "does not hold text", id="bytes"),
    ],
)
def test_a_bad_secret_file_is_named(config_dir, tmp_path, content, said):
    path = tmp_path / "secret"
    if content is not None:
        path.write_bytes(content)
    message = problems_of(config_dir, WAKEFUL_TOKEN_FILE=str(path))
    assert said in message
    assert str(path) in message


def test_a_file_that_is_not_toml_is_named_with_the_place(config_dir):
    message = problems_of(config_dir, "port = \n")
    assert message.startswith(f"{config_dir / 'wakeful.toml'} is not a TOML file: ")
    assert "line 1" in message


def test_a_file_that_cannot_be_read_is_named(config_dir):
    (config_dir / "wakeful.toml").mkdir()
    with pytest.raises(ConfigError, match=r"wakeful\.toml cannot be read: Is a directory"):
        load_settings({"WAKEFUL_CONFIG_DIR": str(config_dir)})


def test_secrets_never_show(config_dir):
    secret = "postgresql://u:hunter2@h/db"
    settings = load(config_dir, WAKEFUL_DATABASE_URL=secret, WAKEFUL_TOKEN="hunter2", WAKEFUL_MODEL_API_KEY="hunter2")
    assert "hunter2" not in repr(settings) + str(settings) + settings.model_dump_json()


def test_a_wrong_secret_does_not_show_in_the_chain_of_errors(config_dir):
    with pytest.raises(ConfigError) as caught:
        load(config_dir, WAKEFUL_DATABASE_URL="mysql://hunter2")
    assert caught.value.__cause__ is None
    assert "hunter2" not in repr(caught.value.__context__)


def test_settings_cannot_be_changed_after_reading():
    with pytest.raises(ValidationError):
        Settings().port = 1  # pyright: ignore[reportAttributeAccessIssue]


def test_every_setting_says_what_it_is():
    for note in describe_settings():
        assert note.description.endswith("."), note.name
        assert note.accepts, note.name


def test_the_settings_page_is_what_the_class_says():
    page = runpy.run_path(str(ROOT / "scripts/settings_docs.py"))["render"]()
    assert (ROOT / "docs/reference/settings.md").read_text(encoding="utf-8") == page, "run: make docs"


def test_the_example_on_the_settings_page_is_accepted(config_dir):
    page = (ROOT / "docs/reference/settings.md").read_text(encoding="utf-8")
    example = page.split("```toml\n")[1].split("```")[0].replace("/run/secrets/", "")
    (config_dir / "model_api_key").write_text("k")
    assert load(config_dir, example).max_headless_runs == 5


def test_every_setting_that_is_more_than_a_number_or_a_choice_is_listed_as_risky_or_known_to_be_harmless():
    """A restore of a backup of unknown origin lists the risky ones."""
    harmless = {"config_dir", "node_name", "base_path", "local_model_ports", "backup_every"}
    for note in describe_settings():
        is_plain = note.accepts == "true or false" or note.accepts.startswith(("a whole number", "0, or", "one of"))
        is_listed = find_risks(f"{note.name} = 'x'") != []
        assert is_listed or is_plain or note.name in harmless, note.name
        assert not (is_listed and note.name in harmless), note.name


def test_risks_are_listed_one_by_one_without_secrets():
    text = "port = 1\nshell_unconfined = true\ntoken_file = '/x'\ntoken = 's'\n[mcp.a]\ncommand = ['x']\nenv.A = 's'\n"
    assert find_risks(text) == [
        "shell_unconfined = true",
        'token_file = "/x"',
        "token = (hidden)",
        'mcp.a.command = ["x"]',
        "mcp.a.env.A = (hidden)",
    ]
    assert find_risks("port = ") == ["The settings are not a TOML file."]
