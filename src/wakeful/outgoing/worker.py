"""The child process that sends: `python -I -m wakeful.outgoing.worker`, a request on stdin.

apprise has plugins for some 200 services, and each opens its own connections. In a child process they can be killed
when they take too long, and an audit hook keeps every plugin from connecting to an address that is not public, starting
a program, or opening a file that does not belong to Python. Plain HTTP requests are sent here for the same reasons.

A request is one JSON object, an answer one line of JSON:

    {"inspect": URL}  → {"schema", "host", "goes_to", "problem"}
    {"send": [[{"id", "url", "headers", "body", "seconds", "pauses"}, …], …], "private_hosts"}
                      → {"id", "status", "retry_after"} or {"id", "problem", "detail"} for each, as it ends

The requests of one list are sent one after the other, the lists at the same time. One without headers is for apprise:
it has an apprise URL, and a title and a text instead of a body.
"""

import gc
import http.client
import json
import logging
import os
import re
import socket
import ssl
import sys
import threading
import time
from base64 import b64decode
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from ipaddress import ip_address
from typing import Any, cast
from urllib.parse import parse_qsl, unquote, urlsplit

from wakeful.core.addresses import is_public
from wakeful.core.resources import hide_memory

_NEEDS_A_PROGRAM = ("subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "os.fork", "os.forkpty", "pty.spawn")
_GOES_OUT = ("socket.connect", "socket.sendto", "socket.sendmsg")
_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT
_READABLE = ("/etc/ssl", "/etc/pki", "/etc/localtime", "/dev/null", "/dev/urandom")
_MAX_REASON = 300
_SHORTEST_SECRET = 5


class Refused(PermissionError):
    """Raised when a plugin tries something that no channel needs."""


def main() -> None:
    """Read a request from stdin and answer it."""
    hide_memory()  # it holds channel addresses, which are secrets
    request: Mapping[str, Any] = json.load(sys.stdin)
    sys.dont_write_bytecode = True
    gc.disable()  # it runs briefly, and mostly imports, which leave nothing to collect
    groups: Sequence[Sequence[Mapping[str, Any]]] = request.get("send", ())
    # apprise takes longest to import, and plain requests need none of it.
    logs = None if groups and all("headers" in each for group in groups for each in group) else _load_apprise()
    context = ssl.create_default_context()  # reads certificates, which the guard would refuse
    guard = AddressGuard(request.get("private_hosts", ()))
    sys.addaudithook(guard)
    if "inspect" in request:
        _answer(inspect(request["inspect"], guard))
        return

    def send(group: Sequence[Mapping[str, Any]]) -> None:
        for each in group:
            answer = _send_http(each, context, guard) if logs is None else _send_apprise(each, guard, logs)
            _answer({"id": each["id"]} | answer)

    with ThreadPoolExecutor(max_workers=max(1, len(groups))) as threads:
        list(threads.map(send, groups))


def _load_apprise() -> "_Logs":
    logs = _Logs()
    logging.getLogger("apprise").addHandler(logs)
    logging.getLogger("apprise").propagate = False
    from apprise.manager_plugins import NotificationManager

    NotificationManager().schemas()  # reads the plugins' files, which the guard would refuse
    return logs


# ── HTTP: without redirects, again after a short pause if that may help ──────────────────────────────────────────────

_MAX_SHORT_WAIT = 5  # seconds that are waited for here when a service asks for them
_MAX_DIGITS = 9
_TOO_MANY = 429


def _send_http(request: Mapping[str, Any], context: ssl.SSLContext, guard: "AddressGuard") -> dict[str, Any]:
    answer: dict[str, Any] = {}
    for pause in (*request["pauses"], None):
        answer = _try_http(request, context, guard)
        wait = None if pause is None else _wait_of(answer, pause)
        if wait is None:
            break
        time.sleep(wait)
    return answer


def _try_http(request: Mapping[str, Any], context: ssl.SSLContext, guard: "AddressGuard") -> dict[str, Any]:
    """Send a request once, and return the status of the answer, or why there is none."""
    parts, seconds = urlsplit(str(request["url"])), request["seconds"]
    target = parts.path or "/"
    connection = (
        http.client.HTTPSConnection(parts.hostname or "", parts.port, timeout=seconds, context=context)
        if parts.scheme == "https"
        else http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=seconds)
    )
    try:
        body = b64decode(request["body"])
        connection.request("POST", f"{target}?{parts.query}" if parts.query else target, body, request["headers"])
        response = connection.getresponse()
    except (OSError, http.client.HTTPException) as error:
        if refused := guard.reason():
            return {"problem": "private_address", "detail": refused}
        is_untrusted = isinstance(error, ssl.SSLCertVerificationError)
        return {"problem": "certificate" if is_untrusted else "unreachable", "detail": type(error).__name__}
    finally:
        connection.close()
    after = response.headers.get("Retry-After")
    is_number = after is not None and after.isdecimal() and len(after) <= _MAX_DIGITS
    return {"status": response.status, "retry_after": int(after or 0) if is_number else None}


def _wait_of(answer: Mapping[str, Any], pause: float) -> float | None:
    """Return how long to wait before the next try; None: it would not help, or not soon."""
    if answer.get("problem") == "unreachable" or answer.get("status", 0) >= 500:
        return pause
    wait = answer.get("retry_after") if answer.get("status") == _TOO_MANY else None
    return max(1.0, wait) if wait is not None and wait <= _MAX_SHORT_WAIT else None


# ── apprise ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def inspect(url: str, guard: "AddressGuard") -> dict[str, Any]:
    """Return the schema of a URL, its host if it has one, and why it cannot be a channel."""
    from apprise import Apprise
    from apprise.manager_plugins import NotificationManager

    schema = url.partition("://")[0].lower()
    plugins: Any = NotificationManager()
    answer: dict[str, Any] = {"schema": schema, "host": None, "goes_to": [], "problem": None}
    if schema not in plugins.schemas():
        return answer | {"problem": "no service is known by that schema"}
    plugin = plugins[schema]
    if not plugin.enabled or not _speaks_http_or_smtp(plugin):
        return answer | {"problem": "this service needs more than HTTP or mail"}
    apprise: Any = Apprise
    made = apprise.instantiate(url)
    if refusal := guard.reason():
        return answer | {"problem": refusal}
    if made is None:
        form = str(plugin.templates[0]).format_map(_Braces(schema=schema))
        return answer | {"problem": f"something in it is missing or wrong; the shortest form is {form}"}
    # If the service has another form, the place of the host may hold a token.
    if all("{host}" in form for form in plugin.templates):
        answer["host"] = made.host
    named = (made.host, getattr(made, "smtp_host", None), *_hosts_in(url))
    answer["goes_to"] = sorted(
        {host for host in map(_bare, named) if host and (host == _bare(answer["host"]) or _is_address(host))}
    )
    return answer


def _hosts_in(url: str) -> list[str]:
    """Return every part of a URL that could be a host: the host itself, and the values of its parameters."""
    try:
        parts = urlsplit(url)
        return [parts.hostname or "", *(value for _, value in parse_qsl(parts.query))]
    except ValueError:
        return []


def _bare(host: object) -> str:
    return str(host or "").strip("[]").rstrip(".").lower()


def _is_address(host: str) -> bool:
    """Return whether a text is an IP address, in any notation, or this machine's name. A token is neither."""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        if ":" in host:
            ip_address(host)
        else:
            socket.inet_aton(host)  # also 127.1 and 2130706433
    except (ValueError, OSError):
        return False
    return True


class AddressGuard:
    """An audit hook that refuses everything no channel needs."""

    def __init__(self, private_hosts: Iterable[str]) -> None:
        self._private_hosts = tuple(private_hosts)
        self._readable = (*_READABLE, *{os.path.realpath(path) for path in (sys.prefix, sys.base_prefix)})
        self._said: dict[int, str] = {}  # by thread

    def reason(self) -> str | None:
        """Return what was refused in the current thread."""
        return self._said.get(threading.get_ident())

    def __call__(self, event: str, args: tuple[Any, ...]) -> None:
        if event in _GOES_OUT:
            self._check_address(args[1])
        elif event == "open":
            self._check_file(*args)
        elif event in _NEEDS_A_PROGRAM:
            self._refuse("it tried to start a program")

    def _check_address(self, address: Any) -> None:
        if address is None:  # checked when the socket was connected
            return
        host = str(cast("tuple[Any, ...]", address)[0]).partition("%")[0] if isinstance(address, tuple) else ""
        try:
            found = ip_address(host)
        except ValueError:
            self._refuse("it tried to reach something on this machine")
            return
        if not is_public(found) and host not in self._private_addresses():
            self._refuse(
                f"the address {host} is not on the public internet; the owner of this server can allow its host in "
                "fetch_private_hosts"
            )

    def _private_addresses(self) -> set[str]:
        found: set[str] = set()
        for host in self._private_hosts:
            try:
                found |= {str(entry[4][0]) for entry in socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)}
            except OSError:
                continue  # a host that cannot be resolved allows nothing
        return found

    def _check_file(self, path: Any, _mode: Any, flags: int | None) -> None:
        if isinstance(path, int):
            return
        real = os.path.realpath(os.fsdecode(path))
        is_ours = any(real == root or real.startswith(f"{root}{os.sep}") for root in self._readable)
        if not is_ours or (flags or 0) & _WRITES:
            self._refuse("it tried to open a file on this machine")

    def _refuse(self, reason: str) -> None:
        self._said[threading.get_ident()] = reason
        raise Refused(reason)


def _send_apprise(request: Mapping[str, Any], guard: AddressGuard, logs: "_Logs") -> dict[str, Any]:
    """Send a message with apprise, and return why it failed, if it did."""
    from apprise import Apprise, AppriseAsset, PersistentStoreMode

    url, sender = request["url"], cast("Any", Apprise)
    sender = sender(asset=AppriseAsset(storage_mode=PersistentStoreMode.MEMORY, async_mode=False))
    try:
        if not sender.add(url):
            return _failed(guard.reason() or "this version cannot read the address; add the channel again")
        if sender.notify(body=request["text"], title=request["title"], body_format="text"):
            return {}
    except Refused as refused:
        return _failed(str(refused))
    except Exception as error:  # noqa: BLE001  (a bug in a plugin becomes the reason that users read)
        return _failed(guard.reason() or f"apprise failed ({type(error).__name__})")
    reason = guard.reason() or without_secrets(logs.last(), url) or "the service refused it without a reason"
    return _failed(reason)


def _failed(reason: str) -> dict[str, Any]:
    return {"problem": "failed", "detail": reason}


def without_secrets(text: str, url: str) -> str:
    """Mask every part of an address, except its schema, in a reason."""
    rest = url.partition("://")[2]
    for part in sorted({*re.split(r"[/:@?&=,]+", rest), rest}, key=len, reverse=True):
        for spelled in {part, unquote(part)}:
            if len(spelled) >= _SHORTEST_SECRET:
                text = text.replace(spelled, "****")
    return " ".join(text.split())[:_MAX_REASON]


def _speaks_http_or_smtp(plugin: type) -> bool:
    modules = [vars(sys.modules[each.__module__]) for each in plugin.__mro__ if ".plugins." in each.__module__]
    return any("requests" in names or "smtplib" in names for names in modules[:-1])  # the last one is the base of all


class _Braces(dict[str, str]):
    """Leaves unknown placeholders as they are."""

    def __missing__(self, key: str) -> str:
        return f"{{{key}}}"


class _Logs(logging.Handler):
    """Keeps the last warning of apprise, by thread."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self._last: dict[int, str] = {}

    def emit(self, record: logging.LogRecord) -> None:
        self._last[threading.get_ident()] = record.getMessage()

    def last(self) -> str:
        return self._last.get(threading.get_ident(), "")


_lock = threading.Lock()


def _answer(value: Mapping[str, Any], write: Callable[[str], object] = sys.stdout.write) -> None:
    with _lock:
        write(f"{json.dumps(value)}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
