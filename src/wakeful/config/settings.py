"""Every setting, read once: the TOML file in the config directory, then the environment, which wins."""

import json
import os
import re
import socket
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from ipaddress import ip_address, ip_network
from pathlib import Path
from typing import Annotated, Any, Literal, Self, cast, get_args
from urllib.parse import urlsplit

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    SecretStr,
    ValidationError,
    model_validator,
)
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from wakeful.config.recipients import parse_every, parse_recipient
from wakeful.core import sources
from wakeful.core.addresses import check_ping_url, hide_login, is_loopback, path_of
from wakeful.core.errors import WakefulError
from wakeful.core.records import Model
from wakeful.core.sources import DEFAULT_HOST, DEFAULT_PORT, FILE_NAME, PREFIX, Given, as_variable
from wakeful.mcp.rules import McpServer, read_servers
from wakeful.models.names import check_written
from wakeful.models.rules import read_models

MIN_TOKEN = 20  # characters, if other machines can reach the server


class ConfigError(Exception):
    """Invalid settings; the message has a line for every problem."""

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__("\n".join(problems))
        self.problems = tuple(problems)


@dataclass(frozen=True, slots=True, kw_only=True)
class Says:
    """A note on a setting for the documentation and errors: the accepted values, and the default."""

    accepts: str | None = None
    default: str | None = None


def _refuse_bool(value: object) -> object:
    if isinstance(value, bool):  # in Python, True is the number 1
        raise ValueError("a number is needed")
    return value


def _lower(value: object) -> object:
    return value.lower() if isinstance(value, str) else value


def _split_commas(value: object) -> object:
    return [part.strip() for part in value.split(",") if part.strip()] if isinstance(value, str) else value


def _check_host(host: str) -> str:
    if not re.fullmatch(r"[\w-]+(\.[\w-]+)*", host, re.ASCII):
        ip_address(host)  # raises unless it is an IPv6 address
    return host.lower()


def _check_web_address(url: str | None) -> str | None:
    if url is None:
        return None
    parts = urlsplit(url)
    is_plain = parts.hostname and parts.port != 0 and not parts.username and not parts.password
    if parts.scheme not in ("http", "https") or not is_plain:
        raise ValueError("not a plain web address")
    return url


def _check_model(model: str) -> str:
    if ":" in model:  # other names may be in the file or in the store
        try:
            check_written(model, ())
        except WakefulError as error:
            raise ValueError(error.message) from None
    return model


def _check_public_url(url: str | None) -> str | None:
    checked = _check_web_address(url)
    if checked is None:
        return None
    parts = urlsplit(checked)
    if parts.query or parts.fragment:
        raise ValueError("more than a host and a path")
    return checked.rstrip("/")


def _check_base_path(path: str) -> str:
    path = path.rstrip("/")
    if (path and not re.fullmatch(r"(/[\w.~-]+)+", path, re.ASCII)) or ".." in path.split("/"):
        raise ValueError("not a path")
    return path


def _check_network(network: str) -> str:
    return str(ip_network(network, strict=False))


def _check_postgres(url: SecretStr | None) -> SecretStr | None:
    if url is not None and not is_postgres(url.get_secret_value()):
        raise ValueError("not a PostgreSQL address")
    return url


def is_postgres(url: str) -> bool:
    """Return whether a text is an address of a PostgreSQL database, or of several hosts of it."""
    # A password with a plain / or # ends the part with the hosts, and the driver would print it as a wrong port.
    hosts = re.split("[/?#]", url.partition("://")[2])[0].rpartition("@")[2].split(",")
    ports = [host.rpartition("]")[2].partition(":")[2] for host in hosts]
    return url.startswith(("postgresql://", "postgres://")) and all(not port or port.isdecimal() for port in ports)


def _check_printable(secret: SecretStr | None) -> SecretStr | None:
    text = "-" if secret is None else secret.get_secret_value()
    if not text or not all("!" <= character <= "~" for character in text):
        raise ValueError("not fit for a header")
    return secret


def _check_ping_url(url: SecretStr | None) -> SecretStr | None:
    if url is not None:
        try:
            check_ping_url(url.get_secret_value())
        except WakefulError:
            raise ValueError("not an address to ping") from None
    return url


def _check_collector(url: str | None) -> str | None:
    checked = _check_web_address(url)
    # A key in the address would be shown; it has a setting of its own.
    if checked is not None and (urlsplit(checked).query or urlsplit(checked).fragment):
        raise ValueError("more than a host and a path")
    return checked


def _check_headers(text: SecretStr | None) -> SecretStr | None:
    if text is not None:
        read_headers(text.get_secret_value())
    return text


def read_headers(text: str) -> dict[str, str]:
    """Return the headers in NAME=VALUE,NAME=VALUE, or raise."""
    found: dict[str, str] = {}
    for part in text.split(","):
        name, sign, value = (each.strip() for each in part.partition("="))
        if not sign or not re.fullmatch(r"[\w-]+", name, re.ASCII) or not re.fullmatch(r"[ -~]+", value):
            raise ValueError("not headers")
        found[name] = value
    return found


def _check_days(days: int) -> int:
    if days and not 31 <= days <= 3650:  # agents look back a month
        raise ValueError("too few or too many days")
    return days


def _check_device_key(key: SecretStr | None) -> SecretStr | None:
    if key is not None and len(bytes.fromhex(key.get_secret_value())) != 32:
        raise ValueError("not 32 bytes")
    return key


def _check_recipient(text: str) -> str:
    try:
        parse_recipient(text)
    except WakefulError as error:
        raise ValueError(error.message) from None
    return text


def _check_every(text: str) -> str:
    parse_every(text)
    return text


def _make_absolute(path: Path) -> Path:
    return path.expanduser().absolute()


def _number(default: int, least: int, most: int, description: str) -> Any:
    return Field(default, ge=least, le=most, description=description)


Directory = Annotated[Path, AfterValidator(_make_absolute), Says(accepts="a path")]
HostName = Annotated[str, AfterValidator(_check_host)]
Whole = Annotated[int, BeforeValidator(_refuse_bool)]
WORD = r"^\S+$"


class Settings(BaseModel):
    """The settings of a server, as `load_settings` reads them."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True, validate_default=True)

    data_dir: Annotated[Directory, Says(default="`~/.local/share/wakeful` on Linux")] = Field(
        default_factory=sources.default_data_dir,
        description="Directory of the embedded store, the agents' databases and their workspaces.",
    )
    config_dir: Annotated[Directory, Says(default="`~/.config/wakeful` on Linux")] = Field(
        default_factory=lambda: sources.find_config_dir({}),
        description=f"Directory of `{FILE_NAME}` and the device key. Environment only.",
    )
    database_url: Annotated[
        SecretStr | None,
        AfterValidator(_check_postgres),
        Says(
            accepts="an address that starts with postgresql:// or postgres://, its password percent-encoded",
            default="embedded SQLite",
        ),
    ] = Field(None, description="The PostgreSQL database that several nodes share.")
    node_name: Annotated[str | None, Says(accepts="up to 100 characters without spaces", default="the host name")] = (
        Field(None, pattern=WORD, max_length=100, description="The name of this node in runs, logs and metrics.")
    )
    database_connections: Whole = _number(
        12, 2, 100, "Most connections to PostgreSQL of this node's pool; up to four more are open besides."
    )
    store_encryption: bool = Field(True, description="Encrypt the embedded store. Has no effect on PostgreSQL.")
    device_key: Annotated[
        SecretStr | None,
        AfterValidator(_check_device_key),
        Says(accepts="64 hexadecimal digits", default="created at first start, stored in the config directory"),
    ] = Field(None, description="The key that encrypts the embedded store and wraps the agents' own keys.")

    host: Annotated[HostName, Says(accepts="a host name or an IP address")] = Field(
        DEFAULT_HOST, description="The address to listen on. One that other machines can reach needs `allowed_hosts`."
    )
    port: Whole = _number(DEFAULT_PORT, 0, 65535, "The port to listen on; 0 takes any free one.")
    allowed_hosts: Annotated[
        tuple[HostName, ...],
        BeforeValidator(_split_commas),
        Says(accepts="a list of host names, without port or *; in the environment separated by commas"),
    ] = Field((), description="The host names of the server, besides those of loopback.")
    public_url: Annotated[
        str | None,
        AfterValidator(_check_public_url),
        Says(accepts="an address such as https://wakeful.example.org", default="none"),
    ] = Field(
        None,
        description="The address at which people reach the server, for login links and messages over channels. Its host"
        " must be in `allowed_hosts`.",
    )
    base_path: Annotated[
        str,
        AfterValidator(_check_base_path),
        Says(accepts="a path that starts with /, such as /wakeful", default="none"),
    ] = Field("", description="The path under which a proxy has the server. Every app on that host shares its logins.")
    trusted_proxies: Annotated[
        tuple[Annotated[str, AfterValidator(_check_network)], ...],
        BeforeValidator(_split_commas),
        Says(
            accepts="a list of addresses or networks such as 10.0.0.0/24; in the environment separated by commas",
            default="none",
        ),
    ] = Field((), description="Proxies whose X-Forwarded-For and X-Forwarded-Proto are believed.")
    tls_certificate: Annotated[Directory | None, Says(accepts="the path of a PEM file", default="no TLS")] = Field(
        None, description="The server's certificate with its chain, if it ends TLS itself. Read again when it changes."
    )
    tls_key: Annotated[Directory | None, Says(accepts="the path of a PEM file", default="no TLS")] = Field(
        None, description="The key of `tls_certificate`."
    )
    health_port: Annotated[Whole | None, Says(accepts="a whole number from 1 to 65535", default="none")] = Field(
        None,
        ge=1,
        le=65535,
        description="A port that answers nothing but /healthz and /readyz, for probes; without TLS or a Host check.",
    )
    token: Annotated[
        SecretStr | None,
        AfterValidator(_check_printable),
        Says(accepts="printable ASCII text without spaces", default="created at first start"),
    ] = Field(
        None,
        description="The owner's bearer token; at least 20 characters if other machines can reach the server.",
    )

    model: Annotated[
        str,
        AfterValidator(_check_model),
        Says(accepts="`demo`, the name of a model, or a provider string such as `anthropic:NAME`"),
    ] = Field("demo", pattern=WORD, description="The model of agents without one of their own.")
    model_base_url: Annotated[
        str | None,
        AfterValidator(_check_web_address),
        Says(accepts="an http:// or https:// address without user name or password", default="the provider's own"),
    ] = Field(None, description="The endpoint of `openai-chat:NAME`.")
    model_api_key: Annotated[
        SecretStr | None,
        AfterValidator(_check_printable),
        Says(accepts="printable ASCII text without spaces", default="none"),
    ] = Field(None, description="The key for the model's provider.")

    models: Annotated[
        dict[str, Model],
        Says(accepts="tables [models.NAME] in the file, see [Models](../models.md)", default="none"),
    ] = Field(default_factory=dict, description="Models by name, besides those that an owner adds.")
    local_model_ports: Annotated[
        tuple[Annotated[int, Field(ge=1, le=65535)], ...],
        BeforeValidator(_split_commas),
        Says(accepts="a list of ports; in the environment separated by commas"),
    ] = Field(
        (11434, 1234, 8000, 8080),
        description="Ports of this machine where an owner who adds a model is offered local ones.",
    )
    context_window: Whole = _number(
        128_000, 1_000, 100_000_000, "Context window, in tokens, of models whose window is unknown."
    )
    small_window: Whole = _number(
        32_768,
        0,
        100_000_000,
        "Up to this context window, in tokens, a model is shown only some of its tools, and gets the others with "
        "`more_tools`; 0: never. See [models](../models.md#small-context-windows).",
    )
    promise_reminders: bool = Field(
        True,
        description="Remind an agent once that promises later work without booking it; see "
        "[promises](../models.md#promises).",
    )
    subagent_depth: Whole = _number(
        2, 1, 5, "How deep subagents can be nested; with 1, a subagent has none of its own."
    )
    subagents_per_run: Whole = _number(20, 1, 1000, "How many subagents one run can start.")

    fetch_private_hosts: Annotated[
        tuple[HostName, ...],
        BeforeValidator(_split_commas),
        Says(accepts="a list of host names or addresses; in the environment separated by commas"),
    ] = Field(
        (), description="Hosts with private addresses that `fetch_url`, channels and push messages may connect to."
    )

    shell_network: bool = Field(False, description="Let commands of the toolset `shell` use the network.")
    shell_read: Annotated[tuple[Directory, ...], Says(accepts="a list of paths", default="none")] = Field(
        (), description="Directories that these commands can read, besides the workspace and the system's software."
    )
    shell_unconfined: bool = Field(
        False,
        description="Run these commands without a sandbox, with the rights of the server's user; "
        "see [access](../access.md).",
    )

    channel_timeout_seconds: Whole = _number(
        20, 1, 300, "Timeout for sending a notification over a channel or to a push service."
    )

    mcp: Annotated[
        dict[str, McpServer],
        Says(accepts="tables [mcp.NAME] in the file, see [MCP servers](../mcp-servers.md)", default="none"),
    ] = Field(default_factory=dict, description="MCP servers that agents can use.")
    mcp_first_start_seconds: Whole = _number(
        120, 1, 3600, "Timeout for the first start of an MCP server, which may include a download."
    )
    mcp_start_seconds: Whole = _number(20, 1, 600, "Timeout for later starts of an MCP server.")
    mcp_call_seconds: Whole = _number(60, 1, 3600, "Timeout for a call of an MCP server's tool.")
    mcp_most_tools: Whole = _number(100, 1, 1000, "How many tools of one MCP server are shown to a model.")

    socket_heartbeat_seconds: Whole = _number(
        20, 1, 3600, "Interval of heartbeats on a socket that has nothing else to send."
    )

    sockets_per_token: Whole = _number(50, 1, 100_000, "How many sockets one token may have open at a time.")
    connections_per_token: Whole = _number(
        100,
        1,
        100_000,
        "How many connections besides sockets one token may have open. A connection belongs to the token of its last "
        "request, also while it is idle and behind a proxy, so requests in progress are counted too. Beyond the limit, "
        "an idle one is closed; if all have a request in progress, the next gets 429.",
    )
    waits_per_token: Whole = _number(
        20,
        1,
        100_000,
        "How many requests of one token may wait at a time: `get_run` and `ask_agent` over MCP with `wait_seconds`, "
        "and `GET /logs` with `wait`.",
    )
    unauthenticated_connections: Whole = _number(
        256,
        8,
        100_000,
        "How many connections without a valid token may be open; beyond it, the oldest is closed. Never more than a "
        "quarter of the process's file descriptors.",
    )
    unauthenticated_connections_per_address: Whole = _number(
        64, 4, 100_000, "The same limit for one address. Behind a proxy, all connections have the proxy's address."
    )
    request_timeout_seconds: Whole = _number(
        10, 1, 3600, "Timeout for the head of a request, and for a pause in its body."
    )

    log_level: Annotated[Literal["debug", "info", "warning", "error"], BeforeValidator(_lower)] = Field(
        "info", description="Minimum severity of logged messages."
    )
    log_format: Literal["text", "json"] = Field(
        "text", description="Log each message as a line of text or as a JSON object."
    )
    log_requests: bool = Field(
        False, description="Log each HTTP request and each closed socket, without queries, headers and bodies."
    )

    heartbeat_url: Annotated[
        SecretStr | None,
        AfterValidator(_check_ping_url),
        Says(accepts="an http:// or https:// address without user name and password", default="none"),
    ] = Field(
        None,
        description="Address that is pinged once a minute while wakes are fired, and with `/fail` while they are not; "
        "see [monitoring](../monitoring.md#the-dead-mans-switch).",
    )

    otel_endpoint: Annotated[
        str | None,
        AfterValidator(_check_collector),
        Says(accepts="an http:// or https:// address without user name, password and ?", default="no traces"),
    ] = Field(
        None,
        description="Address of an OpenTelemetry collector that takes OTLP over HTTP, such as http://localhost:4318, "
        "to send [traces](../traces.md) of runs to. Needs the extra `otel`.",
    )
    otel_headers: Annotated[
        SecretStr | None,
        AfterValidator(_check_headers),
        Says(accepts="NAME=VALUE, several separated by commas", default="none"),
    ] = Field(None, description="Headers for the collector, such as its key.")
    otel_content: bool = Field(
        False, description="Send instructions, messages, arguments and results with the traces too."
    )

    backup_recipients: Annotated[
        tuple[Annotated[str, AfterValidator(_check_recipient)], ...],
        BeforeValidator(_split_commas),
        Says(accepts="a list of age recipients (age1…)", default="none"),
    ] = Field(
        (),
        description="Public keys that [backups](../operate/backup.md) are encrypted to, from `wakeful backup key`.",
    )
    backup_dir: Annotated[Directory | None, Says(accepts="a path", default="none")] = Field(
        None,
        description="Directory of [scheduled backups](../operate/backup.md#scheduled-backups). Needs recipients.",
    )
    backup_every: Annotated[
        str, AfterValidator(_check_every), Says(accepts="an interval from 15m to 90d, such as 30m, 6h or 1d")
    ] = Field("1d", description="Interval of scheduled backups.")
    backup_keep: Whole = _number(7, 1, 10_000, "How many scheduled backups are kept.")

    agent_database_mb: Whole = _number(
        100, 1, 100_000, "Size limit of an agent's own database in mebibytes, unless the agent has its own limit."
    )
    agent_database_workers: Whole = _number(
        2,
        1,
        64,
        "Worker processes for the agents' databases, at least two. An agent has one at a time, so that its slow "
        "queries do not delay other agents.",
    )

    max_headless_runs: Whole = _number(3, 1, 1000, "How many runs without a person one node executes at a time.")
    claim_batch: Whole = _number(256, 1, 10_000, "How many due wakes or queued runs are claimed at once.")
    lease_seconds: Whole = _number(30, 1, 3600, "How long a node that does not respond keeps its runs.")
    v1_side_requests: Literal["answer", "refuse"] = Field(
        "answer",
        description="What to do with requests of chat pages under /v1 for titles, tags and follow-ups: have the "
        "agent's model answer them, within the agent's budget, or refuse them.",
    )

    grace_seconds: Whole = _number(300, 0, 86_400, "How late a wake can fire without counting as missed.")
    defer_seconds: Whole = _number(60, 1, 3600, "How long a recall is deferred if its session is busy.")
    max_deferrals: Whole = _number(10, 0, 1000, "Deferrals after which a recall queues instead.")
    max_attempts: Whole = _number(
        3, 1, 100, "How often a crash may interrupt a run that had reached a model or tool call, before it is given up."
    )
    outage_hold_seconds: Whole = _number(
        3600,
        0,
        604_800,
        "How long a wake that fires once is held and tried again while its model does not answer; then it fails, and "
        "the inbox says so. 0: it fails at once.",
    )
    min_interval_seconds: Whole = _number(10, 1, 86_400, "The shortest interval of a recurring recall.")
    runs_per_hour: Whole = _number(
        60, 1, 100_000, "How many runs an agent's own bookings may start in any hour; the others wait."
    )
    runs_per_token_per_hour: Whole = _number(
        60,
        1,
        100_000,
        "How many runs one token may book or start in any hour through `/mcp` and `/v1`, and one hook; more are "
        "refused, and booked ones wait. Chat pages may ask for titles, tags and follow-ups four times as often.",
    )
    forget_recalls_after_days: Whole = _number(
        30, 0, 3650, "Days without activity of its user after which a recurring recall ends; 0: never."
    )
    run_limit_seconds: Whole = _number(1800, 1, 86_400, "Wall-clock limit of one run, unless the agent has its own.")
    retention_events_hours: Whole = _number(
        24, 0, 87_600, "How long a run's streamed frames are kept after its end; messages stay."
    )
    retention_skipped_days: Whole = _number(
        90, 1, 3650, "How long skipped occurrences are kept one by one before they are aggregated."
    )

    retention_runs_days: Annotated[
        Whole, AfterValidator(_check_days), Says(accepts="0, or a whole number from 31 to 3650")
    ] = Field(
        0, description="Days after which ended runs are deleted, with wakes that are over; messages stay. 0: never."
    )
    retention_sessions_days: Annotated[
        Whole, AfterValidator(_check_days), Says(accepts="0, or a whole number from 31 to 3650")
    ] = Field(
        0,
        description="Days without activity after which a session that a wake opened, and in which no person wrote, is "
        "deleted with its messages. 0: never.",
    )

    @model_validator(mode="after")
    def _refuse_unencrypted_backups(self) -> Self:
        if self.backup_dir is not None and not self.backup_recipients:
            raise ValueError(
                "backup_dir is set, but backup_recipients is not: scheduled backups are only made encrypted to a "
                "recipient. Make one with `wakeful backup key`, and list it in backup_recipients."
            )
        if self.backup_dir is not None and self.backup_dir.resolve() == self.data_dir.resolve():
            raise ValueError("backup_dir must be another directory than data_dir; best on another disk.")
        return self

    @model_validator(mode="after")
    def _refuse_own_directories(self) -> Self:
        """Keep the keys from confined programs, also when a directory around them is listed."""
        named = [("shell_read", path) for path in self.shell_read]
        for name, server in self.mcp.items():
            named += [(f"`read` of [mcp.{name}]", Path(path)) for path in server.read]
            named += [(f"`write` of [mcp.{name}]", Path(path)) for path in server.write]
        for place, path in named:
            real = path.resolve()
            for own in (self.config_dir.resolve(), self.data_dir.resolve()):
                is_inside = own == self.config_dir.resolve() and own in real.parents
                if real == own or real in own.parents or is_inside:
                    raise ValueError(
                        f"{place} has {str(path)!r}, which contains the server's own directory {str(own)!r} or "
                        "is inside it. List the directories that are needed one by one."
                    )
        return self

    @model_validator(mode="after")
    def _check_exposure(self) -> Self:
        if not self.allowed_hosts and not is_loopback(self.host):
            raise ValueError(
                f"host {self.host!r} can be reached from other machines, so allowed_hosts must list its host names,"
                f" for example {PREFIX}ALLOWED_HOSTS=wakeful.example.org. Or keep host 127.0.0.1; in a container that"
                f" only this machine reaches, set {PREFIX}ALLOWED_HOSTS=localhost."
            )
        if self.has_short_token and self.is_reached_from_elsewhere:
            raise ValueError(
                f"token has fewer than {MIN_TOKEN} characters, which is too easy to guess for a server that other"
                f" machines reach (host {self.host!r}, allowed_hosts {', '.join(self.allowed_hosts)}). Choose a longer"
                " one, or leave it out, and the first start creates one."
            )
        return self

    @model_validator(mode="after")
    def _check_public_address(self) -> Self:
        if (self.tls_certificate is None) != (self.tls_key is None):
            raise ValueError("tls_certificate and tls_key need each other: give both, or neither.")
        if self.health_port is not None and self.health_port == self.port:
            raise ValueError(f"health_port is {self.port}, which is port too. Choose another one.")
        if self.public_url is None:
            return self
        parts = urlsplit(self.public_url)
        host = str(parts.hostname)
        if host not in self.allowed_hosts and not is_loopback(host):
            raise ValueError(
                f"public_url has the host {host!r}, which allowed_hosts does not list, so the server would refuse every"
                f" request to it. Add it, for example {PREFIX}ALLOWED_HOSTS={host}."
            )
        if parts.path not in ("", self.base_path):
            raise ValueError(
                f"public_url has the path {parts.path!r}, and base_path is {self.base_path!r}. Set base_path to"
                f" {parts.path!r}, or leave the path out of public_url."
            )
        return self

    @property
    def public_address(self) -> str | None:
        """Return `public_url` with the base path."""
        if self.public_url is None:
            return None
        return self.public_url.removesuffix(self.base_path) + self.base_path

    @property
    def has_short_token(self) -> bool:
        return self.token is not None and len(self.token.get_secret_value()) < MIN_TOKEN

    @property
    def is_reached_from_elsewhere(self) -> bool:
        """Return whether other machines can reach the server, directly or through a proxy on this one."""
        return not all(is_loopback(name) for name in (self.host, *self.allowed_hosts))


SECRETS = frozenset(name for name, field in Settings.model_fields.items() if SecretStr in get_args(field.annotation))
_HIDDEN = SECRETS | {"mcp", "models"}  # never shown in a message
# Not from the environment: setting a variable of the server can take fewer rights than writing its settings file.
_FILE_ONLY = frozenset(
    {
        "backup_dir",
        "heartbeat_url",
        "otel_content",
        "otel_endpoint",
        "otel_headers",
        "shell_network",
        "shell_read",
        "shell_unconfined",
    }
)

# In a settings file that somebody else may have written, these name programs, lift limits, let others in or send data
# to other places. A restore of a backup of unknown origin lists them.
_RISKY = frozenset((
    "mcp", "shell_unconfined", "shell_network", "shell_read", "fetch_private_hosts", "store_encryption",
    "token", "device_key", "host", "allowed_hosts", "trusted_proxies", "public_url", "tls_certificate", "tls_key",
    "model", "models", "model_base_url", "model_api_key", "otel_endpoint", "otel_headers", "otel_content",
    "heartbeat_url", "database_url", "data_dir", "backup_dir", "backup_recipients",
))  # fmt: skip


def find_risks(text: str) -> list[str]:
    """Return a line for every risky value in the text of a settings file, without secrets."""
    try:
        written = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return ["The settings are not a TOML file."]
    risky = {name: value for name, value in written.items() if name.removesuffix("_file") in _RISKY}
    return [f"{name} = {value}" for name, value in _leaves("", risky)]


def _leaves(above: str, table: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for name, value in table.items():
        is_secret = name in SECRETS or above.endswith((".env.", ".headers.")) or name == "key"
        if isinstance(value, dict):
            yield from _leaves(f"{above}{name}.", cast("dict[str, Any]", value))
        else:
            yield above + name, "(hidden)" if is_secret else json.dumps(value, default=str)


def name_of(settings: Settings) -> str | None:
    """Return the name of a node that shares a store with others; None: the store is embedded."""
    return None if settings.database_url is None else settings.node_name or socket.gethostname()


def secrets_of(settings: Settings) -> list[str]:
    """Return every secret in the settings, to keep them out of logs."""
    kept: list[SecretStr | None] = [getattr(settings, name) for name in sorted(SECRETS)]
    headers = [value for server in settings.mcp.values() for value in server.headers.values()]
    keys = [model.key for model in settings.models.values() if model.key is not None]
    secrets = [secret.get_secret_value() for secret in kept if secret is not None] + headers + keys
    if settings.otel_headers is not None:
        secrets += read_headers(settings.otel_headers.get_secret_value()).values()
    # The secret part of an address to ping may be logged without its host.
    return secrets if settings.heartbeat_url is None else [*secrets, path_of(settings.heartbeat_url.get_secret_value())]


def load_settings(environ: Mapping[str, str] | None = None, **options: object) -> Settings:
    """Read the file and the environment; `options` are the command line's and win over both, unless None.

    Raises ConfigError with every problem found, not only the first.
    """
    environ = os.environ if environ is None else environ
    options = {name: value for name, value in options.items() if value is not None}
    problems: list[str] = []
    given = _collect(environ, options, problems)
    values = {name: sources.open_if_file(entry, problems) for name, entry in given.items()}
    try:
        settings = Settings.model_validate({name: value for name, value in values.items() if value is not None})
    except ValidationError as error:
        problems += dict.fromkeys(_explain(detail, given) for detail in error.errors(include_input=False))
        raise ConfigError(problems) from None  # ours name the place of each value
    if problems:
        raise ConfigError(problems)
    return settings


def _collect(environ: Mapping[str, str], options: Mapping[str, object], problems: list[str]) -> dict[str, Given]:
    config_dir = sources.find_config_dir(environ, options.get("config_dir"))
    return (
        sources.from_file(config_dir, _read_file(config_dir, environ, problems))
        | _sort(_read_environment(environ, problems), "the environment", as_variable, problems)
        | _sort(options, "the command line", str, problems)
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingValue:
    """A setting in use, without its value if that is secret, and where it was found."""

    name: str
    value: object
    source: str


def trace_settings(settings: Settings, environ: Mapping[str, str] | None = None) -> list[SettingValue]:
    """Return each setting with the place it comes from: the file, an environment variable, or its default."""
    given = _collect(os.environ if environ is None else environ, {}, [])

    def source_of(name: str) -> str:
        entry = given.get(name)
        if entry is None:
            return "default"
        return f"{entry.place}, {entry.key}" if entry.is_file or entry.place == "the environment" else entry.place

    return [
        SettingValue(name=name, value=_shown(name, getattr(settings, name)), source=source_of(name))
        for name in Settings.model_fields
    ]


def _shown(name: str, value: Any) -> object:
    if name in SECRETS:
        return None if value is None else "(hidden)"
    if name == "mcp":
        return list(value)  # the names; an entry may have secrets in it
    if isinstance(value, tuple):
        return [str(each) for each in cast("tuple[object, ...]", value)]
    return str(value) if isinstance(value, Path) else value


def _read_file(config_dir: Path, environ: Mapping[str, str], problems: list[str]) -> dict[str, Given]:
    path = config_dir / FILE_NAME
    written = sources.read_file(path, problems)
    if written.pop("config_dir", None) is not None:
        problems.append(f"config_dir ({path}) is how this file is found, so set {PREFIX}CONFIG_DIR instead.")
    if "mcp" in written:
        servers, wrong = read_servers(written["mcp"], _secret_from(config_dir, environ))
        written["mcp"] = {
            name: replace(server, read=_expand(server.read), write=_expand(server.write))
            for name, server in servers.items()
        }
        problems += [f"{problem} ({path})" for problem in wrong]
    if "models" in written:
        written["models"], wrong = read_models(written["models"], _secret_from(config_dir, environ))
        problems += [f"{problem} ({path})" for problem in wrong]
    return _sort(written, str(path), str, problems)


def _expand(paths: Sequence[str]) -> tuple[str, ...]:
    return tuple(str(Path(path).expanduser()) for path in paths)


def _secret_from(config_dir: Path, environ: Mapping[str, str]) -> Callable[[Literal["file", "env"], str], str]:
    """Return a function that reads a secret of an MCP server from a file or an environment variable."""

    def read(place: Literal["file", "env"], key: str) -> str:
        if place == "env":
            found = environ.get(key, "").strip()
            if not found:
                raise ValueError(f"the environment variable {key!r} is not set.")
            return found
        try:
            found = (config_dir / Path(key).expanduser()).read_text(encoding="utf-8").strip()
        except OSError as error:
            raise ValueError(f"{key!r} cannot be read: {error.strerror}.") from None
        except UnicodeDecodeError:
            raise ValueError(f"{key!r} does not hold text.") from None
        if not found:
            raise ValueError(f"{key!r} is an empty file.")
        return found

    return read


def _read_environment(environ: Mapping[str, str], problems: list[str]) -> dict[str, object]:
    written = sources.read_variables(environ)
    for name in sorted(_FILE_ONLY):
        for variable in (as_variable(name), as_variable(f"{name}_file")):
            if written.pop(variable, None) is not None:
                problems.append(f"{variable} (the environment) is refused: {name} can only be set in {FILE_NAME}.")
    return written


def _sort(
    written: Mapping[str, object], place: str, spell: Callable[[str], str], problems: list[str]
) -> dict[str, Given]:
    """Return each value under the name of its setting, and report names that are not settings."""
    known = [key for keys in sources.spellings(Settings.model_fields, SECRETS, spell) for key in keys]
    for key in written:
        if key not in known:
            [nearest] = get_close_matches(key, known, n=1, cutoff=0)
            problems.append(f"{key} ({place}) is not a setting; the nearest one is {nearest}.")
    return sources.sort(written, place, spell, Settings.model_fields, SECRETS, problems)


def _explain(detail: ErrorDetails, given: Mapping[str, Given]) -> str:
    if not detail["loc"]:  # an error about several settings has its own message
        return detail["msg"].removeprefix("Value error, ")
    name = str(detail["loc"][0])
    entry = given[name]
    value = hide_login(entry.value) if isinstance(entry.value, str) else entry.value
    shown = "" if name in _HIDDEN else f" = {value!r}"
    if name == "model" and detail["type"] == "value_error":  # it names the nearest
        return f"{entry.key}{shown} ({entry.place}) is refused: {detail['msg'].removeprefix('Value error, ')}"
    return f"{entry.key}{shown} ({entry.place}) is refused: {name} takes {_accepts(Settings.model_fields[name])}."


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingNote:
    """One setting in the documentation."""

    name: str
    variable: str
    accepts: str
    default: str
    description: str
    is_secret: bool
    is_file_only: bool


def describe_settings() -> list[SettingNote]:
    """List every setting in the order of the class."""
    return [
        SettingNote(
            name=name,
            variable=as_variable(name),
            accepts=_accepts(field),
            default=_default(field),
            description=field.description or "",
            is_secret=name in SECRETS,
            is_file_only=name in _FILE_ONLY | {"mcp", "models"},
        )
        for name, field in Settings.model_fields.items()
    ]


def _accepts(field: FieldInfo) -> str:
    said = [note.accepts for note in field.metadata if isinstance(note, Says) and note.accepts]
    if said:
        return said[0]
    if field.annotation is bool:
        return "true or false"
    if choices := get_args(field.annotation):
        return "one of " + ", ".join(choices)
    bounds = {end: getattr(note, end) for note in field.metadata for end in ("ge", "le") if hasattr(note, end)}
    return f"a whole number from {bounds['ge']} to {bounds['le']}"


def _default(field: FieldInfo) -> str:
    said = [note.default for note in field.metadata if isinstance(note, Says) and note.default]
    if said:
        return said[0]
    if isinstance(field.default, bool):
        return f"`{str(field.default).lower()}`"
    return f"`{field.default}`" if field.default != () else "none"
