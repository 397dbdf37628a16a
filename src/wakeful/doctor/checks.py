"""Checks of everything that a server needs."""

# pyright: reportUnknownMemberType=false
import asyncio
import errno
import os
import platform
import re
import shutil
import socket
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

import apsw
import asyncpg

import wakeful
from wakeful.app.building import INSTALL, build, is_otel_installed, make_exporter
from wakeful.app.listening import explain_taken
from wakeful.app.services import find_program, try_mcp_server
from wakeful.config.settings import Settings
from wakeful.core.clock import SystemClock
from wakeful.core.device_key import KEY_FILE, fingerprint, has_device_key
from wakeful.core.errors import WakefulError
from wakeful.core.files import LOCK_FILE, Running
from wakeful.core.resources import MIN_FREE, remedy_of
from wakeful.core.sources import FILE_NAME, TOKEN_FILE
from wakeful.core.zones import format_duration
from wakeful.datadir.device_key import device_key_of
from wakeful.datadir.files import STORE_FILE
from wakeful.datadir.lost_data import check_device_key, check_empty_store, check_not_moved, is_first_start
from wakeful.homes import directories
from wakeful.models.names import NoSuchModel
from wakeful.models.providers import PROVIDERS
from wakeful.store.drivers.sqlite import size_of
from wakeful.store.errors import StoreIsOlder
from wakeful.store.migrate import load_migrations, with_baseline
from wakeful.telemetry.logs import keep_quiet

# apsw's types name collections.abc.Buffer, which Python 3.11 does not have, so its methods count as partly unknown.
# The result of a check.
CheckStatus = Literal["ok", "warning", "wrong", "skipped"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One line of the doctor: what was found, and what to do if that is wrong."""

    name: str
    status: CheckStatus = "ok"
    found: str
    advice: str | None = None


def wrong(name: str, found: str, advice: str) -> Check:
    return Check(name=name, status="wrong", found=found, advice=advice)


def warning(name: str, found: str, advice: str) -> Check:
    return Check(name=name, status="warning", found=found, advice=advice)


def skipped(name: str, found: str) -> Check:
    return Check(name=name, status="skipped", found=found)


# ── The store: it is opened only to read ─────────────────────────────────────────────────────────────────────────────

REWIND_DAYS = 7
_CONNECT_SECONDS = 10.0
_LAST_REWIND = (
    "SELECT to_timestamp(MAX(created_at) / 1e6) AT TIME ZONE 'UTC' FROM notifications WHERE code = 'store_rewound'"
    " AND created_at > (extract(epoch FROM now()) - $1) * 1e6"
)
_BACKUPS = {
    "sqlite": "After a copy, which it makes by itself",
    "postgres": "After a backup, which you make with `pg_dump`",
}


def check_database(settings: Settings, *, is_running: bool, is_quick: bool) -> Check:
    """Check that the store can be opened and has the schema of this version."""
    if settings.database_url is not None:
        return asyncio.run(_check_postgres(settings.database_url.get_secret_value()))
    if is_running:
        return Check(name="database", found=f"{settings.data_dir / STORE_FILE}, open by the running server")
    if is_first_start(settings):
        return Check(name="database", found="created at the first start")
    path = settings.data_dir / STORE_FILE
    try:
        check_not_moved(settings)
        if not size_of(path):
            check_empty_store(settings)
            return Check(name="database", found="created at the first start")
        if settings.device_key is None and not has_device_key(settings.config_dir):
            return skipped("database", "cannot be opened without the device key")
        return _check_sqlite(settings, path, is_quick)
    except WakefulError as error:
        found, _, advice = error.message.partition(". ")
        return wrong("database", found, advice)


def _check_sqlite(settings: Settings, path: Path, is_quick: bool) -> Check:
    connection: Any = None
    try:
        connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
        if settings.store_encryption:
            connection.pragma("cipher", "aegis")
            connection.execute(f"PRAGMA key = 'raw:{device_key_of(settings).hex()}'")
        applied = {row[0] for row in connection.execute("SELECT number FROM migrations")}
        damage = "ok" if is_quick else str(connection.pragma("quick_check"))
    except (apsw.CantOpenError, apsw.ReadOnlyError, apsw.PermissionsError) as error:
        return wrong(
            "database",
            f"{path} cannot be opened: {error}",
            f"Make it and {settings.data_dir} readable and writable for this user, and mount its disk for writing.",
        )
    except (apsw.IOError, apsw.FullError) as error:
        return wrong(
            "database",
            f"{path} cannot be read: {error}",
            "Free space on its disk, or see in the system's log what it has.",
        )
    except apsw.Error as error:
        return wrong(
            "database",
            f"{path} cannot be read: {error}",
            "It is damaged, or encrypted with another device key. Restore the key (`wakeful key restore`) or the store "
            f"from a backup; copies made before upgrades are in {settings.data_dir / 'backups'}.",
        )
    finally:
        if connection is not None:
            connection.close()
    if damage != "ok":
        return wrong("database", f"{path} is damaged: {damage[:200]}", "Stop using it, and restore a backup.")
    return _compare(applied, "sqlite", f"SQLite, {path}")


def ask_time(settings: Settings) -> tuple[str, datetime | None] | None:
    """Return the time of PostgreSQL, if the store is there."""

    async def read(url: str) -> datetime | None:
        try:
            connection = await asyncpg.connect(url, timeout=_CONNECT_SECONDS)
        except (OSError, asyncpg.PostgresError, asyncpg.InterfaceError, TimeoutError):
            return None  # which the check of the database reports
        try:
            return await connection.fetchval("SELECT clock_timestamp()")
        finally:
            await connection.close()

    url = settings.database_url
    return None if url is None else ("PostgreSQL", asyncio.run(read(url.get_secret_value())))


async def _check_postgres(url: str) -> Check:
    try:
        connection = await asyncpg.connect(url, timeout=_CONNECT_SECONDS)
    except asyncpg.InvalidAuthorizationSpecificationError as error:
        return wrong(
            "database",
            f"PostgreSQL refuses the user or the password: {error}",
            "Correct the user and the password in WAKEFUL_DATABASE_URL (database_url); `psql URL` tries them.",
        )
    except asyncpg.InvalidCatalogNameError as error:
        return wrong(
            "database",
            f"PostgreSQL answers, but {error}",
            "Create it (`createdb NAME`), or correct the name at the end of WAKEFUL_DATABASE_URL (database_url).",
        )
    except (OSError, asyncpg.PostgresError, asyncpg.InterfaceError, TimeoutError) as error:
        return wrong(
            "database",
            f"PostgreSQL does not answer: {str(error) or type(error).__name__}",
            "See that it runs, can be reached from here, and has the address in WAKEFUL_DATABASE_URL (database_url).",
        )
    try:
        server = await connection.fetchval("SHOW server_version")
        if await connection.fetchval("SELECT to_regclass('migrations')") is None:
            return Check(name="database", found=f"PostgreSQL {server}, empty; set up at the first start")
        applied = {row["number"] for row in await connection.fetch("SELECT number FROM migrations")}
        rewound = await connection.fetchval(_LAST_REWIND, REWIND_DAYS * 86_400)
    finally:
        await connection.close()
    found = _compare(applied, "postgres", f"PostgreSQL {server}")
    if found.status != "ok" or rewound is None:
        return found
    return warning(
        "database",
        f"{found.found}; it was taken back to an earlier state, noticed at {rewound:%Y-%m-%d %H:%M} UTC",
        "What was written after that state is lost. Look at what agents were doing then, and set up synchronous "
        f"replication, so that a promotion loses nothing. This line goes after {REWIND_DAYS} days.",
    )


def _compare(applied: set[int], dialect: str, found: str) -> Check:
    known = {each.number for each in load_migrations(dialect)}
    try:
        applied = with_baseline(applied, dialect)
    except StoreIsOlder as error:
        return wrong("database", f"its schema ({max(applied)}) is of a version before 0.2", error.message)
    if applied - known:
        return wrong(
            "database",
            f"its schema ({max(applied)}) is newer than this version knows ({max(known)})",
            "Install the version of Wakeful that was used last, or a newer one.",
        )
    if missing := known - applied:
        return wrong(
            "database",
            f"its schema is old: {len(missing)} of {len(known)} migrations are missing",
            f"{_BACKUPS[dialect]}, `wakeful migrate` or the start of the server brings it up to date.",
        )
    return Check(name="database", found=f"{found}, schema {max(known)}")


# ── The device key and the owner's token ─────────────────────────────────────────────────────────────────────────────


def check_keys(settings: Settings) -> Iterator[Check]:
    """Check that the device key is there, can be read, and is the one of this data; and who can read the secrets."""
    yield _check_device_key(settings)
    if settings.has_short_token:
        yield warning("token", "the owner's token is short and could be guessed", "Set WAKEFUL_TOKEN to a longer one.")
    elif settings.token is None and not (settings.config_dir / TOKEN_FILE).exists():
        yield Check(name="token", found="created at the first start")
    else:
        found = "from the settings" if settings.token else str(settings.config_dir / TOKEN_FILE)
        yield Check(name="token", found=found)
    open_files = [str(path) for path in _secret_files(settings) if path.exists() and path.stat().st_mode & 0o077]
    if open_files:
        yield wrong(
            "permissions",
            f"other users of this machine may read {', '.join(open_files)}",
            f"Run `chmod 600 {' '.join(open_files)}`. If others have used this machine, also rotate the keys.",
        )


def _check_device_key(settings: Settings) -> Check:
    try:
        check_device_key(settings)  # raises if there is data of a key that is missing
        if settings.device_key is None and not has_device_key(settings.config_dir):
            return Check(name="device key", found="created at the first start")
        known = directories.find_directory(settings.data_dir)
        key = device_key_of(settings)
    except WakefulError as error:
        found, _, advice = error.message.partition(". ")
        return wrong("device key", found, advice or "Restore it with `wakeful key restore`.")
    if known is not None and known.key_fingerprint not in (None, fingerprint(key)):
        return wrong(
            "device key",
            f"it is not the key of the data in {settings.data_dir}",
            "Restore the right one with `wakeful key restore`, or set WAKEFUL_CONFIG_DIR to the directory that has it.",
        )
    found = "from the settings" if settings.device_key else str(settings.config_dir / KEY_FILE)
    return Check(name="device key", found=found)


def _secret_files(settings: Settings) -> list[Path]:
    return [settings.config_dir / name for name in (KEY_FILE, TOKEN_FILE, "contexts.json")]


# ── This machine: versions, directories, disk, clock, port ───────────────────────────────────────────────────────────

FEW_FREE = 10**9
MAX_CLOCK_ERROR = timedelta(seconds=30)
_SET_CLOCK = (
    "Set this machine's clock, best by NTP (`timedatectl set-ntp true`, or your system's settings), and restart the "
    "server: wakes fire by this clock"
)


def check_versions(running: Running | None) -> Check:
    ours = version("wakeful")
    found = f"Wakeful {ours}, Python {platform.python_version()}, SQLite {apsw.sqlite_lib_version()}"
    if running is not None and running.version != ours:
        return wrong(
            "versions",
            f"the running server is {running.version}, and this is {ours}",
            f"Restart the server (pid {running.pid}), so that it runs the version that is installed.",
        )
    return Check(name="versions", found=f"{found}, {sys.platform}")


def check_disk(settings: Settings) -> Iterator[Check]:
    """Check that the directories can be written, and that there is room."""
    for name, variable, folder in (
        ("data directory", "WAKEFUL_DATA_DIR", settings.data_dir),
        ("config directory", "WAKEFUL_CONFIG_DIR", settings.config_dir),
    ):
        yield _check_folder(name, variable, folder)
    free = shutil.disk_usage(_existing(settings.data_dir)).free
    found = f"{free / 10**9:.1f} GB free in {settings.data_dir}"
    advice = (
        f"Free space on that disk (1 GB is plenty), or move the data to a larger one: stop the server, move "
        f"{settings.data_dir} there, and set WAKEFUL_DATA_DIR to the new place."
    )
    if free < MIN_FREE:
        yield wrong("disk", f"only {free / 10**6:.1f} MB free in {settings.data_dir}", advice)
    elif free < FEW_FREE:
        yield warning("disk", found, advice)
    else:
        yield Check(name="disk", found=found)


def _check_folder(name: str, variable: str, folder: Path) -> Check:
    place = _existing(folder)
    try:
        with tempfile.NamedTemporaryFile(dir=place, prefix=".doctor-") as file:
            file.write(b"x" * 4096)
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        return wrong(
            name,
            f"{place} cannot be written: {error.strerror}",
            remedy_of(error, f"Make it writable for this user, or set {variable} to another directory."),
        )
    return Check(name=name, found=f"{folder}" if place == folder else f"{folder} (created at the first start)")


def _existing(folder: Path) -> Path:
    return next(each for each in (folder, *folder.parents) if each.is_dir())


def check_clock(settings: Settings, references: dict[str, datetime | None]) -> Check:
    """Compare the clock with files that were written before now, and with the times that others sent us."""
    now = SystemClock().now()
    for name, theirs in references.items():
        if (problem := compare_clock(name, theirs)) is not None:
            return problem
    for path in (Path(wakeful.__file__), settings.data_dir / LOCK_FILE, settings.data_dir / STORE_FILE):
        if path.exists():
            written = datetime.fromtimestamp(path.stat().st_mtime, UTC)
            if written - now > MAX_CLOCK_ERROR:
                return wrong(
                    "clock",
                    f"it is {now:%Y-%m-%d %H:%M} UTC here, but {path} was written at {written:%Y-%m-%d %H:%M} UTC",
                    f"{_SET_CLOCK}. If the time here is right, the file was written while it was wrong: start the "
                    "server, which writes it again and corrects what was planned.",
                )
    known = [name for name, theirs in references.items() if theirs is not None]
    compared = f", as at {', '.join(known)}" if known else ""
    return Check(name="clock", found=f"{now:%Y-%m-%d %H:%M:%S} UTC{compared}")


def read_date(date: str | None) -> datetime | None:
    """Return the time in the Date header of a response."""
    try:
        read = None if date is None else parsedate_to_datetime(date)
    except ValueError:
        return None
    return None if read is None or read.tzinfo is None else read


def compare_clock(name: str, theirs: datetime | None) -> Check | None:
    """Return what is wrong if another clock differs from this machine's."""
    now = SystemClock().now()
    if theirs is None or abs(now - theirs) <= MAX_CLOCK_ERROR:
        return None
    side = "ahead of" if now > theirs else "behind"
    found = f"this machine's clock is {format_duration(abs(now - theirs))} {side} that of {name}"
    return wrong("clock", found, f"{_SET_CLOCK}.")


def check_proxy(settings: Settings) -> Iterator[Check]:
    """Check the settings for a reverse proxy, if there are any."""
    if settings.base_path:
        yield warning(
            "base path",
            f"the page is under {settings.base_path}, and every other app on that host can act as a logged-in person",
            "Trust everything else on that host, or give the server a host name of its own and unset base_path.",
        )
    if settings.public_url is not None:
        yield Check(name="public address", found=str(settings.public_address))
    elif settings.allowed_hosts:
        yield warning(
            "public address",
            f"login links name http://{settings.host}, though people use {', '.join(settings.allowed_hosts)}",
            f"Set public_url in wakeful.toml, for example to https://{settings.allowed_hosts[0]}.",
        )


def check_port(settings: Settings, running: Running | None) -> Check:
    """Check that a server could listen, unless it does so already."""
    if running is not None:
        return Check(name="port", found=f"{running.address}, where the server listens (pid {running.pid})")
    if settings.port == 0:
        return Check(name="port", found="any free one")
    try:
        family, _, _, _, address = socket.getaddrinfo(settings.host, settings.port, type=socket.SOCK_STREAM)[0]
        with socket.create_server((str(address[0]), settings.port), family=family):
            return Check(name="port", found=f"{settings.host}:{settings.port} is free")
    except PermissionError:
        return wrong("port", f"{settings.port} is not for ordinary users", "Set WAKEFUL_PORT (port) to 1024 or more.")
    except OSError as error:
        if error.errno != errno.EADDRINUSE:
            found = f"cannot listen on {settings.host}: {error.strerror}"
            return wrong("port", found, "Set WAKEFUL_HOST (host) to an address of this machine.")
        who = explain_taken(settings.port, settings.data_dir)
        return wrong("port", f"{settings.host}:{settings.port} is taken", f"{who[0].upper()}{who[1:]}")


# ── MCP servers in the settings file ─────────────────────────────────────────────────────────────────────────────────


def check_mcp_servers(settings: Settings, states: Mapping[str, Any] | None, *, is_quick: bool) -> Iterator[Check]:
    """Check each server: its program, and unless it is quick, a start. `states` are those of the running server."""
    file = settings.config_dir / FILE_NAME
    for name, entry in settings.mcp.items():
        state = (states or {}).get(name)
        label = f"MCP {name}"
        if entry.command and find_program(settings, name) is None:
            yield wrong(
                label,
                f"there is no program {entry.command[0]!r}",
                f"Install it, or write its full path in `command` of [mcp.{name}] in {file}; `wakeful mcp rm {name}` "
                "removes the entry. Then restart the server.",
            )
        elif states is not None and state is None:
            yield wrong(
                label, "the running server does not know it", "Restart the server, which reads the file at its start."
            )
        elif is_quick:
            yield Check(name=label, found="not started (--quick)")
        else:
            yield _try_mcp_server(
                settings, name, is_unconfined=state is not None and state["confinement"] == "unconfined"
            )
    if not settings.mcp:
        yield Check(name="MCP", found="no servers set up")


def _try_mcp_server(settings: Settings, name: str, *, is_unconfined: bool) -> Check:
    trial = try_mcp_server(settings, name, is_unconfined=is_unconfined)
    if trial.problem is not None:
        return wrong(
            f"MCP {name}",
            trial.problem,
            f"Correct [mcp.{name}] in {settings.config_dir / FILE_NAME}, try it with `wakeful mcp test {name}`, and "
            "restart the server.",
        )
    return Check(name=f"MCP {name}", found=f"works, {len(trial.tools)} tools")


# ── The model: a test request, by the running server or, without one, with the settings alone ────────────────────────

DEMO = "demo"
_DATE_SECONDS = 5.0
_ADVICE = {
    "key": "Give the right key in WAKEFUL_MODEL_API_KEY or model_api_key_file (or the variable of its provider), and "
    "restart the server.",
    "address": "See that the model's server runs and can be reached from here, and that WAKEFUL_MODEL_BASE_URL "
    "(model_base_url) is its address.",
    "name": "Correct the name in WAKEFUL_MODEL (model); the provider does not have this one.",
    "model": "Correct the name in WAKEFUL_MODEL (model); the provider does not have this one.",
    "timeout": "Try again: it may have been loading. If it stays so, choose a faster model in WAKEFUL_MODEL (model).",
}
_OTHER = "See WAKEFUL_MODEL (its name), WAKEFUL_MODEL_API_KEY (its key) and WAKEFUL_MODEL_BASE_URL (its address)."

_CHOSEN = (
    "Correct its key, address or name with `wakeful model edit {}` or on the page under Models, or choose another one "
    "with `wakeful model default`."
)


def check_model_alone(settings: Settings) -> Check:
    """Test the model of the settings without a running server."""
    if "model" not in settings.model_fields_set and not is_first_start(settings):
        return skipped("model", "none in the settings; one that was chosen on the page is tested while the server runs")
    if settings.model == DEMO:
        return judge({"model": DEMO, "outcome": "answered"})
    return judge(asyncio.run(_try_model(settings)))


def name_calls_as_text(models: Iterable[str]) -> Iterator[Check]:
    """Name each model that is marked as writing its tool calls as text."""
    for name in models:
        yield warning(
            f"model {name}",
            "`tool_calls = text` counts as `none`: calls that a model writes as text are no longer made",
            f"Test it again (`wakeful model test {name}`). If it was set by hand, change it with `wakeful model edit "
            f"{name} --tool-calls none`, or in wakeful.toml.",
        )


def judge(trial: Mapping[str, Any], *, is_chosen: bool = False) -> Check:
    """Return the check for the result of a test request; `is_chosen` if the model is not from the settings."""
    model = trial["model"]
    if model == DEMO:
        return Check(
            name="model", found="the built-in demo, which is not an LLM; `wakeful model add` connects a real one"
        )
    if trial["outcome"] != "answered":
        found, _, advice = str(trial.get("reason")).partition(" was removed. ")
        if advice:  # the default model
            return wrong("model", f"{found} was removed", advice)
        kind = trial.get("problem") or _kind_of(str(trial.get("reason")), str(trial["outcome"]))
        return wrong(
            "model", str(trial.get("reason")), _CHOSEN.format(model) if is_chosen else _ADVICE.get(kind, _OTHER)
        )
    if trial.get("tool_calls") == "none":
        return warning(
            "model",
            f"{model} answers, but calls no tools",
            f"Choose one that can call tools {'with `wakeful model default`' if is_chosen else 'in WAKEFUL_MODEL'}.",
        )
    calls = " and calls tools" if trial.get("tool_calls") else ""
    return Check(name="model", found=f"{model} answers{calls}, after {trial['seconds']:.1f} s")


def _kind_of(reason: str, outcome: str) -> str:
    status = re.search(r"\(HTTP (\d+)\)", reason)
    if status is not None:
        return {"401": "key", "403": "key", "404": "name"}.get(status[1], "")
    return "timeout" if outcome == "timed_out" else "key" if "not set up" in reason else "address"


async def _try_model(settings: Settings) -> dict[str, Any]:
    """Test the model with a node of its own in an empty directory, so that nothing here is opened or created."""
    keep_quiet()
    with tempfile.TemporaryDirectory(prefix="wakeful-doctor-") as folder:
        places = {"data_dir": Path(folder) / "data", "config_dir": Path(folder) / "config"}
        node = build(settings.model_copy(update=places | {"database_url": None, "device_key": None, "mcp": {}}))
        try:
            async with node.opened():
                while (trial := await node.services.models.test_of_agent(None)).outcome == "waiting":
                    pass  # each request waits; a local model may have to be loaded
                return asdict(trial)
        except NoSuchModel as error:  # such as one that was added, which only the running server knows
            return {"model": settings.model, "outcome": "failed", "reason": error.message, "problem": "name"}


def ask_date(settings: Settings) -> tuple[str, datetime | None] | None:
    """Return the host of the model's provider and the time there, from a request without any key."""
    provider = PROVIDERS.get(settings.model.partition(":")[0])
    url = urlsplit(settings.model_base_url or (provider.address if provider else None) or "")
    if settings.model == DEMO or not url.hostname:
        return None
    kind = HTTPSConnection if url.scheme == "https" else HTTPConnection
    connection = kind(url.hostname, url.port, timeout=_DATE_SECONDS)
    try:
        connection.request("HEAD", "/")
        return url.hostname, read_date(connection.getresponse().headers.get("Date"))
    except (OSError, HTTPException):
        return url.hostname, None
    finally:
        connection.close()


# ── The collector of traces ──────────────────────────────────────────────────────────────────────────────────────────

_TRACES_ADVICE = {
    "unreachable": "See that the collector runs and takes OTLP over HTTP at this address, usually on port 4318.",
    "certificate": "Its certificate is not valid for this host, or this machine does not trust it.",
    "refused": "It does not take traces at this address: see its documentation for otel_endpoint and otel_headers.",
    "redirect": "Redirects are not followed: set otel_endpoint to the address that it redirects to.",
}


def check_traces(settings: Settings, *, is_quick: bool) -> Iterator[Check]:
    """Check that the extra is installed and, unless it is quick, that the collector takes a request without spans."""
    endpoint = settings.otel_endpoint
    if endpoint is None:
        return
    if not is_otel_installed():
        yield wrong("traces", f"otel_endpoint is {endpoint}, but the OpenTelemetry SDK is not installed", INSTALL)
    elif is_quick:
        yield skipped("traces", f"{endpoint}, not asked (--quick)")
    else:
        outcome = make_exporter(settings).probe()
        if outcome == "sent":
            yield Check(name="traces", found=f"{endpoint} takes them")
        else:
            yield wrong("traces", f"{endpoint} does not take them: {outcome}", _TRACES_ADVICE[outcome])
