"""Reads settings from `wakeful.toml` and the environment, without validating the values.

Not in `config/settings.py`, because a command that talks to a running server needs three settings, and loading pydantic
for them would take longer than the command.
"""

import tomllib
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from platformdirs import user_config_path, user_data_path

PREFIX = "WAKEFUL_"
TEST_PREFIX = "WAKEFUL_TEST_"  # only read by the tests
CLIENT_VARIABLES = frozenset({"WAKEFUL_URL", "WAKEFUL_CONTEXT"})  # of commands, not settings of a server
FILE_NAME = "wakeful.toml"
TOKEN_FILE = "token"  # in the config directory; created at first start
DEFAULT_HOST, DEFAULT_PORT = "127.0.0.1", 8420


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """The unparsed value of a setting, and where it was found."""

    key: str  # as written: port, WAKEFUL_PORT, token_file
    place: str
    value: object
    is_file: bool = False  # the value is the path of a file that holds the secret


def read_values(
    environ: Mapping[str, str], names: Collection[str], secrets: Collection[str], problems: list[str]
) -> dict[str, object]:
    """Return the values that were given for some settings; the environment overrides the file."""
    config_dir = find_config_dir(environ)
    path = config_dir / FILE_NAME
    given = from_file(config_dir, sort(read_file(path, problems), str(path), str, names, secrets, problems))
    given |= sort(read_variables(environ), "the environment", as_variable, names, secrets, problems)
    return {name: open_if_file(entry, problems) for name, entry in given.items()}


def find_config_dir(environ: Mapping[str, str], option: object = None) -> Path:
    named = option or environ.get(f"{PREFIX}CONFIG_DIR", "").strip()
    return Path(str(named)).expanduser().absolute() if named else user_config_path("wakeful", appauthor=False)


def default_data_dir() -> Path:
    return user_data_path("wakeful", appauthor=False)


def read_file(path: Path, problems: list[str]) -> dict[str, object]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        pass
    except OSError as error:
        problems.append(f"{path} cannot be read: {error.strerror}.")
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        problems.append(f"{path} is not a TOML file: {error}.")
    return {}


def read_variables(environ: Mapping[str, str]) -> dict[str, object]:
    """Return our environment variables. An empty one counts as not set."""
    return {
        key: value
        for key, value in environ.items()
        if key.startswith(PREFIX) and not key.startswith(TEST_PREFIX) and key not in CLIENT_VARIABLES and value.strip()
    }


def sort(
    written: Mapping[str, object],
    place: str,
    spell: Callable[[str], str],
    names: Collection[str],
    secrets: Collection[str],
    problems: list[str],
) -> dict[str, Given]:
    """Pick the settings with these names; `spell` turns a name into its spelling in this place."""
    plain, files = spellings(names, secrets, spell)
    given: dict[str, Given] = {}
    for key, value in written.items():
        name = plain.get(key) or files.get(key)
        if name in given:
            problems.append(f"{given[name].key} and {key} ({place}) give the same secret; keep one of them.")
        elif name is not None:
            given[name] = Given(key=key, place=place, value=value, is_file=key in files)
    return given


def spellings(
    names: Collection[str], secrets: Collection[str], spell: Callable[[str], str]
) -> tuple[dict[str, str], dict[str, str]]:
    """Map spellings to settings, for values and for paths of files with a secret."""
    return {spell(name): name for name in names}, {spell(f"{name}_file"): name for name in sorted(secrets)}


def from_file(config_dir: Path, given: Mapping[str, Given]) -> dict[str, Given]:
    """Resolve relative paths against the settings file's directory, not against the working directory."""
    return {
        name: replace(entry, value=str(config_dir / Path(entry.value).expanduser()))
        if isinstance(entry.value, str) and (entry.is_file or name in ("data_dir", "backup_dir"))
        else entry
        for name, entry in given.items()
    }


def as_variable(name: str) -> str:
    return PREFIX + name.upper()


def open_if_file(entry: Given, problems: list[str]) -> object | None:
    """Return the value, or the content of the file it names; None if that failed, with an entry in `problems`."""
    if not entry.is_file:
        return entry.value
    # With an @ it may be an address with a password, in place of the path of its file.
    shown = "" if "@" in str(entry.value) else f" = {entry.value!r}"
    written = f"{entry.key}{shown} ({entry.place})"
    try:
        secret = Path(str(entry.value)).expanduser().read_text(encoding="utf-8").strip()
    except OSError as error:
        problems.append(f"{written} cannot be read: {error.strerror}.")
        return None
    except UnicodeDecodeError:
        problems.append(f"{written} does not hold text.")
        return None
    if not secret:
        problems.append(f"{written} is an empty file.")
    return secret or None
