"""The file of saved servers, `contexts.json` in the config directory, which only its owner can read."""

import json
import os
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from wakeful.cli.output import fail
from wakeful.core.sources import find_config_dir

FILE_NAME = "contexts.json"
LOCAL = "local"  # the server of this machine's settings; always there


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """A saved server."""

    url: str
    token: str = field(repr=False)
    ca: str | None = None
    insecure: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Contexts:
    """All saved servers, and the one that commands use without being asked."""

    current: str = LOCAL
    saved: dict[str, Context] = field(default_factory=dict[str, Context])

    def get(self, name: str) -> Context:
        """Return a context, or end the command if there is none of that name."""
        if name not in self.saved:
            fail(f"There is no context {name!r}. `wakeful context ls` shows these: {', '.join([LOCAL, *self.saved])}.")
        return self.saved[name]


def contexts_path() -> Path:
    return find_config_dir(os.environ) / FILE_NAME


def load_contexts() -> Contexts:
    """Read the file; without one, there is only this machine."""
    path = contexts_path()
    try:
        found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        saved = {str(name): Context(**each) for name, each in found["contexts"].items()}
        return Contexts(current=str(found["current"]), saved=saved)
    except FileNotFoundError:
        return Contexts()
    except OSError as error:
        fail(f"{path} cannot be read: {error.strerror}.")
    except (ValueError, KeyError, TypeError, AttributeError):
        fail(f"{path} is damaged. Delete it, and add your servers again with `wakeful context add`.")


def save_contexts(contexts: Contexts) -> None:
    """Replace the file in one step."""
    from wakeful.core.files import replace_file

    path = contexts_path()
    text = {"current": contexts.current, "contexts": {name: asdict(each) for name, each in contexts.saved.items()}}
    try:
        replace_file(path, f"{json.dumps(text, indent=2)}\n".encode())
    except OSError as error:
        fail(f"{path} cannot be written: {error.strerror}. Nothing was changed.")
