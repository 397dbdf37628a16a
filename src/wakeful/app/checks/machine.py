"""Checks of this machine: versions, directories, disk, clock, port."""

import errno
import os
import platform
import shutil
import socket
import sys
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from importlib.metadata import version
from pathlib import Path

import apsw

import wakeful
from wakeful.app.checks.check import Check, warning, wrong
from wakeful.app.data.earlier_data import STORE_FILE
from wakeful.app.data.server_lock import FILE_NAME, Running
from wakeful.app.ports import explain_taken
from wakeful.clock import SystemClock
from wakeful.config import Settings
from wakeful.domain.resources import remedy_of
from wakeful.domain.wakes.duration import format_duration
from wakeful.service.resources import MIN_FREE

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
    for path in (Path(wakeful.__file__), settings.data_dir / FILE_NAME, settings.data_dir / STORE_FILE):
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
