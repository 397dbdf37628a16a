"""How commands speak to a running server: over REST, with the owner's token of this machine."""

from typing import Any, NoReturn
from urllib.parse import quote

import httpx2
import typer

from wakeful.config import TOKEN_FILE, ConfigError, Settings, load_settings

NOT_REACHED, REFUSED = 3, 1  # exit codes besides 2, which is for a command that was typed wrong


class Server:
    """A running server. Every failure ends the command with a message and an honest exit code."""

    def __init__(self, settings: Settings, token: str) -> None:
        host = "127.0.0.1" if settings.host in ("0.0.0.0", "::", "localhost") else settings.host
        self.address = f"http://[{host}]:{settings.port}" if ":" in host else f"http://{host}:{settings.port}"
        self._http = httpx2.Client(
            base_url=self.address, headers={"Authorization": f"Bearer {token}"}, timeout=30, trust_env=False
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
        return " ".join(filter(None, (problem["message"], problem.get("hint"))))
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
