"""Write docs/reference/settings.md from the Settings class; a test compares the two."""

from pathlib import Path

from wakeful.config import SettingNote, describe_settings

PAGE = Path(__file__).parent.parent / "docs/reference/settings.md"

INTRO = """\
# Settings

<!-- Written by `make docs` from src/wakeful/config.py; edit there. -->

Settings are read once, at start. They come from two places, and the second wins:

1. `wakeful.toml` in the config directory, with the names of the first column;
2. the environment, with the same names in capitals after `WAKEFUL_`. An empty variable counts as not set.

A name that is not in this table stops the start with an error that names the nearest one; only variables that begin
with `WAKEFUL_TEST_` are left to the tests. A relative path in the file is meant from the config directory, one in the
environment from the working directory.

| in the file | in the environment | accepts | default | meaning |
|---|---|---|---|---|
"""

SECRETS = """
## Secrets

{names} never appear in logs, errors or listings. Each can also be given as the path of a file that holds it:
`{variable}_FILE=/run/secrets/{name}`, or `{name}_file` in the TOML file. Space around the secret is dropped. Giving
both forms in one place is an error, as is a file that is empty or cannot be read.

## Example

```toml
port = 9000
log_format = "json"
max_headless_runs = 5
model_api_key_file = "/run/secrets/model_api_key"
```
"""


def render() -> str:
    """Return the whole page."""
    notes = describe_settings()
    secrets = [note for note in notes if note.is_secret]
    names = ", ".join(f"`{note.name}`" for note in secrets)
    ending = SECRETS.format(names=names, name="token", variable="WAKEFUL_TOKEN")
    return INTRO + "".join(map(row, notes)) + ending


def row(note: SettingNote) -> str:
    """Return the table row of one setting."""
    name = "–" if note.name == "config_dir" else f"`{note.name}`"
    variable = "–" if note.is_file_only else f"`{note.variable}`"
    return f"| {name} | {variable} | {note.accepts} | {note.default} | {note.description} |\n"


if __name__ == "__main__":
    PAGE.write_text(render(), encoding="utf-8")
