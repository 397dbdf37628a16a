"""The server's port: listening on it, explaining who else does, and announcing its address in the data directory."""

import asyncio
import contextlib
import errno
import fcntl
import json
import os
import socket
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException
from itertools import chain, repeat
from pathlib import Path

from wakeful.core.errors import Unavailable
from wakeful.core.files import LOCK_FILE, find_running

BACKLOG = 2048  # connections that wait in the kernel
# A command that looks at the file holds the lock for a moment. A second node on the same data directory gets the lock
# when the first one ends.
_RETRY_SECONDS = (0.02,) * 10, 1.0
_LISTEN = "0A"  # the state of a socket in /proc/net/tcp
_PROBE_SECONDS = 2.0


class PortTaken(Unavailable):
    code = "port_taken"


def listen(host: str, port: int, data_dir: Path) -> socket.socket:
    """Listen on an address, or raise with the program that has the port."""
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listener = socket.create_server((str(address[0]), port), family=family, backlog=BACKLOG)
    except OSError as error:
        raise PortTaken(f"Cannot listen on {host}:{port}: {_explain(error, host, port, data_dir)}") from error
    # uvicorn writes headers and body separately, and the body would wait 40 ms for the client's delayed ACK. Accepted
    # connections inherit the option. asyncio sets it only if the socket's protocol number is TCP's; here it is 0.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listener


def _explain(error: OSError, host: str, port: int, data_dir: Path) -> str:
    if isinstance(error, socket.gaierror):
        return f"the host {host!r} is not known. Set --host or WAKEFUL_HOST to an address of this machine."
    if error.errno == errno.EADDRNOTAVAIL:
        return f"{host} is not an address of this machine. Set --host or WAKEFUL_HOST to one of its addresses."
    if error.errno == errno.EACCES:
        return "ports below 1024 are not for ordinary users. Choose another one with --port or WAKEFUL_PORT."
    if error.errno != errno.EADDRINUSE:
        return f"{error.strerror}. Choose another address with --host or another port with --port."
    return explain_taken(port, data_dir)


def explain_taken(port: int, data_dir: Path) -> str:
    """Return who has a port, and what to do about it."""
    running = find_running(data_dir)
    if running is not None and running.address.endswith(f":{port}"):
        return (
            f"this server runs there already (pid {running.pid}, version {running.version}). "
            "`wakeful open` opens its page, and `wakeful status` shows how it is. To start it again, stop it first "
            f"with `kill {running.pid}`."
        )
    found = find_listener(port)
    stop = "stop that one" if found.pid is None else f"stop that one (`kill {found.pid}`)"
    return (
        f"{found.describe()} listens there. Either {stop}, or choose another port: `wakeful serve --port {port + 1}`, "
        "or WAKEFUL_PORT. With --port 0 the server takes any free one, and commands find it."
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Listener:
    """The program that listens on a port, as far as it can be found out."""

    pid: int | None = None
    program: str | None = None
    wakeful_version: str | None = None  # it is a Wakeful server

    def describe(self) -> str:
        name = self.program or "another program"
        if self.wakeful_version is not None:
            name = f"another Wakeful server ({self.wakeful_version})"
        return name if self.pid is None else f"{name}, pid {self.pid}"


def find_listener(port: int) -> Listener:
    """Find the program that listens on a port of this machine. Other users' programs are found only by root."""
    pid = _find_pid(port)
    return Listener(pid=pid, program=_name_of(pid), wakeful_version=_ask_version(port))


def _find_pid(port: int) -> int | None:
    inodes = {f"socket:[{inode}]" for inode in _find_inodes(port)}
    if not inodes:
        return None
    for handle in Path("/proc").glob("[0-9]*/fd/*"):
        with contextlib.suppress(OSError):  # it has ended, or belongs to another user
            if str(handle.readlink()) in inodes:
                return int(handle.parts[2])
    return None


def _find_inodes(port: int) -> set[str]:
    found: set[str] = set()
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        with contextlib.suppress(OSError):  # there is none, as on macOS
            for line in Path(table).read_text(encoding="ascii").splitlines()[1:]:
                fields = line.split()
                if fields[3] == _LISTEN and int(fields[1].rpartition(":")[2], 16) == port:
                    found.add(fields[9])
    return found


def _name_of(pid: int | None) -> str | None:
    """Return the name of a program. Its arguments are not shown: there may be secrets in them."""
    try:
        return None if pid is None else Path(f"/proc/{pid}/comm").read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError):
        return None


def _ask_version(port: int) -> str | None:
    connection = HTTPConnection("127.0.0.1", port, timeout=_PROBE_SECONDS)
    try:
        connection.request("GET", "/healthz")
        found = json.loads(connection.getresponse().read(10_000))
        return str(found["version"]) if found["ok"] is True else None
    except (OSError, HTTPException, ValueError, KeyError, TypeError):
        return None
    finally:
        connection.close()


@asynccontextmanager
async def announced(data_dir: Path, address: str, version: str) -> AsyncGenerator[None]:
    """Announce the address of this server in the data directory during the block."""
    running = json.dumps({"address": address, "pid": os.getpid(), "version": version})
    task = asyncio.create_task(_hold(data_dir / LOCK_FILE, running))
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait([task])


async def _hold(path: Path, text: str) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError:
        return  # opening the store fails too, and says why
    try:
        for seconds in chain(_RETRY_SECONDS[0], repeat(_RETRY_SECONDS[1])):
            if _take(handle):
                break
            await asyncio.sleep(seconds)
        os.ftruncate(handle, 0)
        os.pwrite(handle, f"{text}\n".encode(), 0)
        await asyncio.Event().wait()  # until it is cancelled
    except OSError:
        pass  # a full disk: commands need --token-file, since they do not send the token of this machine
    finally:
        os.close(handle)


def _take(handle: int) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
