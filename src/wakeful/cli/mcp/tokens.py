"""Tokens of `wakeful mcp`, in `mcp-tokens.json` in the config directory, which only its owner can read."""

import json
import os
from pathlib import Path
from typing import Any

from wakeful.cli.client import Server
from wakeful.cli.fail import fail
from wakeful.sources import find_config_dir

FILE_NAME = "mcp-tokens.json"


def tokens_path() -> Path:
    return find_config_dir(os.environ) / FILE_NAME


def find_token(url: str, name: str, scope: str) -> str | None:
    """Return the saved token for a server with this name, if it has this scope."""
    saved = _load().get(url, {}).get(name)
    return saved["token"] if saved and saved["scope"] == scope else None


def make_token(server: Server, name: str, scope: str) -> str:
    """Create a token in place of those with the same name, and return its secret."""
    for each in server.get("tokens")["tokens"]:
        if each["kind"] == "api" and each["name"] == name:
            server.delete("tokens", each["id"])
    return server.post("tokens", body={"name": name, "scope": scope})["secret"]


def save_token(url: str, name: str, scope: str, token: str) -> None:
    """Save a token in the file, in one step."""
    from wakeful.app.data.durable_files import replace_file

    saved = _load()
    saved.setdefault(url, {})[name] = {"scope": scope, "token": token}
    path = tokens_path()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(path, f"{json.dumps(saved, indent=2)}\n".encode())
    except OSError as error:
        fail(
            f"{path} cannot be written: {error.strerror}. The new token was not saved. Set WAKEFUL_CONFIG_DIR to a "
            "directory that you can write to."
        )


def _load() -> dict[str, dict[str, Any]]:
    path = tokens_path()
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except OSError as error:
        fail(f"{path} cannot be read: {error.strerror}.")
    except ValueError:
        fail(f"{path} is damaged. Delete it: new tokens are made, and the old ones can be revoked in Settings.")
