"""`wakeful db` and `wakeful key` as people type them, against a real server."""

import json
import re
import stat
from contextlib import closing

import pytest
import sqlcipher3
from typer.testing import CliRunner

from terminal import Terminal, a_terminal, typed
from wakeful.cli.main import app

TASKS = "title,cost\nmilk,2\nbread,3\ntea,5\n"


@pytest.fixture(scope="module")
def terminal(tmp_path_factory):
    with a_terminal(tmp_path_factory.mktemp("cli-db")) as terminal:
        yield terminal


@pytest.fixture
def tasks(terminal, tmp_path):
    """The one agent's database with a table in it."""
    file = tmp_path / "tasks.csv"
    file.write_text(TASKS)
    done = terminal.run("db", "import", "tasks", str(file))
    assert done.returncode == 0, done.stderr
    assert "Imported 3 rows into a new table tasks." in done.stdout
    yield terminal
    assert terminal.run("db", "erase", "--agent", "Wakeful", "--confirm", "Wakeful").returncode == 0


def titles(terminal, *options: str) -> list[str]:
    found = terminal.read("db", "rows", "tasks", *options)
    return [row[found["columns"].index("title")] for row in found["rows"]]


HOSTILE = "\x1b]0;owned\x07\x1b]52;c;aGk=\x07\x7f\x9b2J\u202egpj.exe\u2066"
CONTROLS = ("\x1b]", "\x07", "\x7f", "\x9b", "\u202e", "\u2066")


@pytest.fixture
def hostile(tasks, tmp_path):
    """A row by somebody else, and a view that fails with it: SQLite quotes data in its messages."""
    file = tmp_path / "hostile.json"
    file.write_text(json.dumps([{"title": HOSTILE, "cost": 1}]))
    assert tasks.run("db", "import", "tasks", str(file)).returncode == 0
    bad = "SELECT json_extract('{}', title) AS bad FROM tasks WHERE id = 4"
    assert tasks.run("db", "save-view", "broken", bad).returncode == 0
    return tasks


async def on_a_terminal(terminal: Terminal, *arguments: str) -> str:
    async with typed(*arguments, environment=terminal.environment | {"TERM": "xterm"}, columns=400) as command:
        await command.code()
        await command.until(command.shown[-1:])  # all that it wrote was read
        return command.raw.replace("\r\n", "\n")


async def test_a_row_in_an_error_cannot_control_the_terminal(hostile):
    assert "bad JSON path" in hostile.run("db", "view", "broken").stderr
    shown = await on_a_terminal(hostile, "db", "view", "broken")
    assert "bad JSON path: '\\x1b]0;owned\\x07" in shown
    assert not any(each in shown for each in CONTROLS)


@pytest.mark.parametrize("form", ["csv", "json", "jsonl"])
async def test_an_export_cannot_control_the_terminal_and_is_unchanged_elsewhere(hostile, form, tmp_path):
    arguments = ("db", "export", "tasks", "--format", form)
    shown = await on_a_terminal(hostile, *arguments)
    assert not any(each in shown for each in CONTROLS)
    assert ("owned" in shown, "milk" in shown, "\\r" in shown) == (True, True, False)
    assert hostile.run(*arguments, "--to", str(tmp_path / "file")).returncode == 0
    piped = hostile.run(*arguments).stdout
    assert piped.splitlines() == (tmp_path / "file").read_text().splitlines()
    if form == "csv":
        assert HOSTILE in piped
    elif form == "json":
        assert json.loads(shown) == json.loads(piped)


async def test_json_on_a_terminal_is_escaped_and_still_json(hostile):
    arguments = ("db", "rows", "tasks", "--json")
    piped = hostile.run(*arguments).stdout
    assert "\x9b2J\u202e" in piped  # as the server has it
    shown = await on_a_terminal(hostile, *arguments)
    assert not any(each in shown for each in CONTROLS)
    assert json.loads(shown) == json.loads(piped)


def test_an_agent_without_a_database_has_no_tables(terminal):
    shown = terminal.run("db", "tables")
    assert "There are no tables yet." in shown.stdout
    assert "0 of 104,857,600 bytes are used." in shown.stdout
    assert terminal.read("db", "tables")["state"] == "none"


def test_tables_schema_and_rows_are_shown(tasks):
    assert re.search(r"tasks\s+3\s+0", tasks.run("db", "tables").stdout)
    assert re.search(r"tasks\s+cost\s+integer", tasks.run("db", "schema").stdout)
    assert "_changelog" not in tasks.run("db", "schema").stdout
    assert "_changelog" in tasks.run("db", "schema", "--system").stdout
    assert re.search(r"1\s+1\s+milk\s+2", tasks.run("db", "rows", "tasks").stdout)
    assert "2 of 3 rows." in tasks.run("db", "rows", "tasks", "--limit", "2").stdout
    assert titles(tasks, "--sort", "cost", "--desc") == ["tea", "bread", "milk"]
    assert titles(tasks, "--where", '{"cost": {"gte": 3}}', "--offset", "1") == ["tea"]


def test_rows_are_added_edited_deleted_and_restored(tasks):
    assert tasks.run("db", "add", "tasks", "--set", "title=salt", "--set", "cost=1").stdout == "Added row 4.\n"
    assert tasks.run("db", "edit", "tasks", "4", "1", "--set", "cost=null").stdout == "Changed 2.\n"
    assert titles(tasks, "--where", '{"cost": null}') == ["milk", "salt"]
    assert tasks.run("db", "delete", "tasks", "1", "2").stdout == "Deleted 2.\n"
    assert titles(tasks, "--show", "deleted") == ["milk", "bread"]
    assert tasks.run("db", "restore", "tasks", "2").stdout == "Restored 1.\n"
    assert titles(tasks) == ["bread", "tea", "salt"]
    ops = [change["op"] for change in tasks.read("db", "log", "--table", "tasks", "--row", "2")["changes"]]
    assert ops == ["restore", "soft_delete", "import"]
    assert "soft_delete" in tasks.run("db", "log").stdout


def test_a_statement_and_a_view_are_run(tasks):
    asked = ("db", "query", "SELECT title FROM tasks WHERE cost >= :least", "--param", "least=3")
    assert tasks.read(*asked)["rows"] == [["bread"], ["tea"]]
    assert tasks.run(*asked).stdout.split() == ["title", "bread", "tea"]
    assert "There are no views yet." in tasks.run("db", "views").stdout
    refused = tasks.run("db", "view", "dear")
    assert refused.returncode == 1
    assert "'dear'" in refused.stderr


def invoke(terminal, *words, typed=None):
    """Run a command in this process, with what is typed at its prompts."""
    return CliRunner().invoke(app, ["db", *words], input=typed, env=terminal.environment)


def test_tables_are_made_and_changed_and_views_saved(terminal):
    def run(*words):
        return invoke(terminal, *words)  # there are many, and each process would load Python again

    def said(*words):
        done = run(*words)
        assert done.exit_code == 0, done.output
        return done.output

    made = said(
        "create", "pages", "--purpose", "Read.", "--column", "url:text:required:unique", "--column", "hits:integer"
    )
    assert made == "Created the table pages.\n"
    assert "seen" in said("alter", "pages", "--column", "seen:date")
    upsert = ("upsert", "pages", "--by", "url", "--set", "url=a")
    assert said(*upsert, "--set", "hits=1") == "Inserted row 1.\n"
    assert said(*upsert, "--set", "hits=2") == "Updated row 1.\n"
    assert said("execute", "UPDATE pages SET hits = hits + :n", "--param", "n=3") == "Changed 1.\n"
    down = "ALTER TABLE pages RENAME COLUMN visits TO hits"
    moved = ("migrate", "ALTER TABLE pages RENAME COLUMN hits TO visits", "--down", down, "--purpose", "Clearer.")
    assert said(*moved) == "Statements run: 1. Tables: pages.\n"
    sql = "SELECT url FROM pages WHERE visits >= :least AND url <> :but"
    saved = said("save-view", "busy", sql, "--param", "least=3", "--param", "but", "--render", "bar", "--pin")
    assert saved == "Created the view busy.\n"
    assert json.loads(said("view", "busy", "--param", "but=b", "--json"))["rows"] == [["a"]]
    [view] = json.loads(said("views", "--json"))["views"]
    assert (view["pinned"], view["render"], view["required_parameters"]) == (True, "bar", ["but"])
    assert said("pin", "busy", "--off") == "Unpinned.\n"
    assert said("drop-view", "busy") == "Deleted.\n"
    refused = run("execute", "DELETE FROM pages")
    assert (refused.exit_code, "`wakeful db delete`" in refused.output) == (1, True)
    assert run("alter", "pages", "--column", "a:text:dear").exit_code == 2
    said("erase", "--agent", "Wakeful", "--confirm", "Wakeful")


def test_a_dropped_table_is_recovered(tasks):
    assert tasks.run("db", "snapshots").stdout == "There are no snapshots yet.\n"
    assert tasks.run("db", "migrate", "DROP TABLE tasks", "--purpose", "x").returncode == 0
    [snapshot] = tasks.read("db", "snapshots")
    assert snapshot["name"] in tasks.run("db", "snapshots").stdout
    assert tasks.run("db", "recover", snapshot["name"], "tasks").stdout == "Recovered 3 rows as tasks.\n"
    done = tasks.run("db", "recover", snapshot["name"], "tasks", "--as", "again")
    assert done.stdout == "Recovered 3 rows as again.\n"
    assert titles(tasks) == ["milk", "bread", "tea"]


def test_a_column_named_like_the_row_id_is_imported_under_another_name(tasks, tmp_path):
    (tmp_path / "found.csv").write_text("oid,name\n7,x\n")
    done = tasks.run("db", "import", "found", str(tmp_path / "found.csv"))
    assert "The column oid was renamed to oid_2" in done.stdout


def test_two_columns_of_one_name_are_both_shown(tasks):
    shown = tasks.run("db", "query", "SELECT 1 AS n, 2 AS n").stdout
    assert shown.split() == ["n", "n", "1", "2"]


def test_what_an_agent_wrote_does_nothing_to_the_terminal(tasks):
    tasks.run("db", "add", "tasks", "--set", 'title="\\u001b[2J\\u0007gone\\nnext"')
    for command in (("db", "rows", "tasks"), ("db", "log")):
        shown = tasks.run(*command).stdout
        assert "gone" in shown
        assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f]", shown)


def test_an_export_is_safe_for_spreadsheets_and_goes_in_again(tasks, tmp_path):
    tasks.run("db", "add", "tasks", "--set", "title==1+1")
    assert "'=1+1" in tasks.run("db", "export", "tasks").stdout
    for ending in ("csv", "json", "jsonl"):
        file = tmp_path / f"out.{ending}"
        done = tasks.run("db", "export", "tasks", "--format", ending, "--to", str(file))
        assert (done.returncode, done.stdout) == (0, f"Exported to {file}.\n")
        assert tasks.read("db", "import", f"from_{ending}", str(file))["imported"] == 4
        found = tasks.read("db", "query", f"SELECT title FROM from_{ending} WHERE id = 4")
        assert found["rows"] == [["=1+1"]]
    exported = json.loads(tasks.run("db", "export", "tasks", "--json").stdout)
    assert [each["title"] for each in exported] == ["milk", "bread", "tea", "=1+1"]


def test_what_is_typed_wrong_says_how_it_is_right(tasks, tmp_path):
    for arguments, code, words in (
        (("db", "export"), 2, "--view"),
        (("db", "import", "tasks", str(tmp_path / "x.xls")), 2, "--format"),
        (("db", "import", "tasks", str(tmp_path / "none.csv")), 1, "none.csv"),
        (("db", "add", "tasks", "--set", "title"), 2, "NAME=VALUE"),
        (("db", "rows", "chores"), 1, "'chores'"),
        (("db", "rows", "tasks", "--agent", "Nobody"), 1, "Wakeful"),
        (("db", "undo", "nothing-here"), 1, "nothing-here"),
        (("db", "revert", "1"), 1, "Change 1"),
        (("db", "recover", "none", "tasks", "--as", "x"), 1, "`wakeful db snapshots`"),
        (("db", "erase", "--agent", "Wakeful", "--confirm", "Evil"), 1, "'Evil'"),
    ):
        refused = tasks.run(*arguments)
        assert (refused.returncode, words in refused.stderr) == (code, True), (arguments, refused.stderr)
        assert "Traceback" not in refused.stderr
    assert titles(tasks) == ["milk", "bread", "tea"]


def test_the_key_is_shown_to_who_confirms_it_and_opens_the_file(tasks):
    shown = tasks.run("db", "key", "--agent", "Wakeful", "--yes")
    assert shown.returncode == 0, shown.stderr
    settings, path, pragma = shown.stdout.splitlines()
    assert "SQLCipher 4" in settings
    with closing(sqlcipher3.connect(path.removeprefix("-- "))) as connection:
        connection.execute(pragma)
        assert connection.execute("SELECT count(*) FROM tasks").fetchall() == [(3,)]
    assert tasks.read("db", "key", "--agent", "Wakeful", "--yes")["pragma"] == pragma
    assert "key_shown" in tasks.run("db", "log").stdout


@pytest.mark.parametrize(("typed", "is_shown"), [("", False), ("Evil\n", False), ("Wakeful\n", True)])
def test_the_key_is_shown_to_who_types_the_agents_name(tasks, typed, is_shown):
    done = invoke(tasks, "key", "--agent", "Wakeful", typed=typed)
    assert (done.exit_code == 0, "PRAGMA key" in done.output) == (is_shown, is_shown)


def test_with_several_agents_the_command_asks_which_by_name_or_id(tasks):
    made = tasks.read("agent", "add", "Ada")
    try:
        refused = tasks.run("db", "tables")
        assert refused.returncode == 2
        assert made["id"] in refused.stderr
        assert tasks.read("db", "tables", "--agent", "Ada")["state"] == "none"
        assert tasks.read("db", "tables", "--agent", made["id"])["state"] == "none"
        assert tasks.read("db", "tables", "--agent", "Wakeful")["state"] == "open"
    finally:
        tasks.run("agent", "rm", made["id"], "--yes")


def test_the_log_is_verified_and_the_key_is_changed(tasks):
    assert tasks.run("db", "verify").stdout == "The changelog is intact.\n"
    assert tasks.run("db", "rekey").stdout == "The database is now encrypted with a new key.\n"
    assert tasks.read("db", "verify") == {"intact": True, "broken_at": None, "is_cut_off": False}
    assert titles(tasks) == ["milk", "bread", "tea"]


def test_a_run_that_wrote_nothing_leaves_nothing_to_undo(tasks):
    wake = tasks.read("wake", "add", "Write ping to ping.txt with write_file.", "--when", "1h")["recall"]["id"]
    run = tasks.read("wake", "run", wake, "--wait")["id"]
    assert tasks.run("db", "undo", run).stdout == "Undid the changes of 0 rows; left 0 as they are.\n"


def test_the_device_key_comes_back_from_its_recovery_key(terminal, tmp_path):
    shown = terminal.run("key", "show")
    assert re.fullmatch(r"([A-Z2-7]{4}-){13}[A-Z2-7]{4}\n", shown.stdout)
    lost = Terminal(terminal.environment | {"WAKEFUL_CONFIG_DIR": str(tmp_path / "config")}, tmp_path)
    refused = lost.run("key", "show")
    assert refused.returncode == 1
    assert "wakeful key restore" in refused.stderr
    paper = tmp_path / "paper.txt"
    paper.write_text(shown.stdout.lower().replace("-", " "))
    restored = lost.run("key", "restore", "--file", str(paper))
    assert restored.returncode == 0, restored.stderr
    assert lost.run("key", "show").stdout == shown.stdout
    key = tmp_path / "config" / "device.key"
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    paper.write_text("AAAA-" + shown.stdout[5:])
    wrong = lost.run("key", "restore", "--file", str(paper))
    assert (wrong.returncode, "not a recovery key" in wrong.stderr) == (1, True)
    assert lost.run("key", "show").stdout == shown.stdout


def test_a_device_key_that_the_settings_give_is_not_restored_into_a_file(terminal, tmp_path):
    settings = {"WAKEFUL_CONFIG_DIR": str(tmp_path), "WAKEFUL_DEVICE_KEY": "11" * 32}
    given = Terminal(terminal.environment | settings, tmp_path)
    paper = tmp_path / "paper.txt"
    paper.write_text(given.read("key", "show")["recovery_key"])
    refused = given.run("key", "restore", "--file", str(paper))
    assert (refused.returncode, "WAKEFUL_DEVICE_KEY" in refused.stderr) == (1, True)
    assert not (tmp_path / "device.key").exists()
