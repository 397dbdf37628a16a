"""How commands speak to a running server: over REST, with the owner's token of this machine."""

import ssl
from typing import Any, NoReturn
from urllib.parse import quote

import httpx2
import typer

from wakeful.config import TOKEN_FILE, ConfigError, Settings, load_settings

_OPTIONS = {  # which option of a command a field of the server's is
    "additional_context_message": "TEXT",
    "at": "--when",
    "columns": "--column",
    "conflict_columns": "--by",
    "context_views": "--view",
    "cron": "--cron",
    "instructions": "TEXT",
    "internal_comment": "--comment",
    "comment": "--comment",
    "database_mb": "--database-mb",
    "down_sql": "--down",
    "interval_seconds": "--every",
    "label": "--comment",
    "max_runs": "--max-runs",
    "message": "TEXT",
    "parameters": "--param",
    "purpose": "--purpose",
    "scheduled_at": "--when",
    "session_config.model": "--model",
    "session_config.session_name": "--name",
    "session_config.tool_ids": "--tool",
    "sql": "SQL",
    "status": "--status",
    "timezone": "--zone",
    "toolsets": "--toolset",
    "until": "--until",
    "up_sql": "SQL",
    "when": "--when",
}
REFUSED, WRONG, NOT_REACHED = 1, 2, 3  # exit codes: the server's no, a command that cannot be meant so, no server
_NO_AGENT = "You have no agent yet. Make one with `wakeful agent add NAME`."


class Server:
    """A running server. Every failure ends the command with a message and an honest exit code."""

    def __init__(self, settings: Settings, token: str) -> None:
        host = "127.0.0.1" if settings.host in ("0.0.0.0", "::", "localhost") else settings.host
        self.address = f"http://[{host}]:{settings.port}" if ":" in host else f"http://{host}:{settings.port}"
        self._http = httpx2.Client(
            base_url=self.address,
            headers={"Authorization": f"Bearer {token}", "User-Agent": "wakeful-cli"},  # so errors name commands
            timeout=30,
            trust_env=False,
            verify=ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT),  # not used; to read whom the web trusts takes 35 ms
        )

    def get(self, *path: str, **query: Any) -> Any:
        return self._get(path, query).json()

    def get_text(self, *path: str, **query: Any) -> str:
        """Return what is no JSON, such as a file."""
        return self._get(path, query).text

    def post(self, *path: str, body: Any = None) -> Any:
        return self._call("POST", path, json=body).json()

    def put(self, *path: str, body: Any = None) -> Any:
        return self._call("PUT", path, json=body).json()

    def patch(self, *path: str, body: Any = None) -> Any:
        return self._call("PATCH", path, json=body).json()

    def delete(self, *path: str, body: Any = None) -> Any:
        return self._call("DELETE", path, json=body).json()

    def agent(self, wanted: str | None) -> dict[str, Any]:
        """Find an agent by its id or name; without either, the only one there is."""
        agents: list[dict[str, Any]] = self.get("agents")["agents"]
        fitting = [each for each in agents if wanted is None or wanted in (each["id"], each["name"])]
        listed = "\n".join(f"  {each['id']}  {each['name']}" for each in fitting or agents)
        if not agents:
            fail(_NO_AGENT)
        if not fitting:
            fail(f"There is no agent {wanted!r}. `wakeful agent ls` shows these:\n{listed}")
        if len(fitting) > 1:
            fail(f"Which agent? Give one of these ids:\n{listed}", WRONG)
        return fitting[0]

    def agent_id(self, wanted: str | None) -> Any:
        """Return the id of an agent that is named by its id or name; None stays None."""
        return None if wanted is None else self.agent(wanted)["id"]

    def first_agent_id(self) -> str:
        """Return the agent that is meant when none is named."""
        found = self.get("agents")["agents"]
        return found[0]["id"] if found else fail(_NO_AGENT)

    def _get(self, path: tuple[str, ...], query: dict[str, Any]) -> httpx2.Response:
        return self._call("GET", path, params={name: value for name, value in query.items() if value is not None})

    def _call(self, method: str, path: tuple[str, ...], **options: Any) -> httpx2.Response:
        try:
            answer = self._http.request(method, "/" + "/".join(quote(part, safe="") for part in path), **options)
        except httpx2.TransportError as error:
            fail(
                f"No server answers at {self.address} ({type(error).__name__}). Start it with `wakeful serve`, or set "
                "WAKEFUL_HOST and WAKEFUL_PORT to where it is.",
                NOT_REACHED,
            )
        if not answer.is_success:
            fail(_words_of(answer))
        return answer


def _words_of(answer: httpx2.Response) -> str:
    try:
        problem = answer.json()["error"]
        field = problem.get("field") or ""
        option = _OPTIONS.get(field) or _OPTIONS.get(field.partition(".")[0])
        return " ".join(filter(None, (option and f"{option}:", problem["message"], problem.get("hint"))))
    except (ValueError, KeyError, TypeError):
        return f"The server answered {answer.status_code}, and not in a form I know."


def connect() -> Server:
    """Find the server of these settings, and the token to show it."""
    try:
        settings = load_settings()
    except ConfigError as error:
        fail(str(error))
    token = _find_token(settings)
    if not token:
        fail(
            f"There is no token in {settings.config_dir}. "
            "Start the server once with `wakeful serve`, or set WAKEFUL_TOKEN."
        )
    return Server(settings, token)


def _find_token(settings: Settings) -> str | None:
    if settings.token is not None:
        return settings.token.get_secret_value()
    path = settings.config_dir / TOKEN_FILE
    try:
        return path.read_text(encoding="ascii").strip()
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        fail(f"The token file {str(path)!r} cannot be read: {error}.")


def fail(message: str, code: int = REFUSED) -> NoReturn:
    """End the command with a message for people."""
    typer.secho(message, fg=typer.colors.RED, err=True)
    raise typer.Exit(code)
