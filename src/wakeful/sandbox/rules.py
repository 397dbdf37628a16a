"""Rules for the guard: what a confined program may read, write and connect to; and which level of confinement works."""

import logging
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from shutil import which
from typing import Literal, TypedDict

from wakeful.core.labels import Confinement
from wakeful.sandbox.guard import guarded

log = logging.getLogger(__name__)

SEARCH_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
# Directories of software, and files that programs expect. Not all of /etc: it holds keys and other programs' secrets.
SYSTEM = (
    "/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store", "/gnu/store",
    *(f"/etc/{name}" for name in (
        "alternatives", "bash.bashrc", "ca-certificates", "ca-certificates.conf", "debian_version", "fonts", "gai.conf",
        "gitconfig", "group", "host.conf", "hostname", "hosts", "inputrc", "ld.so.cache", "ld.so.conf",
        "ld.so.conf.d", "ld-musl-x86_64.path", "locale.alias", "locale.conf", "localtime", "magic", "mailcap",
        "mime.types", "nsswitch.conf", "os-release", "passwd", "perl", "pki/ca-trust", "pki/tls/cert.pem",
        "pki/tls/certs", "profile", "profile.d", "protocols", "python3", "resolv.conf", "rpc", "services", "shells",
        "ssl/cert.pem", "ssl/certs", "ssl/openssl.cnf", "terminfo", "timezone", "xattr.conf",
    )),
    *(f"/proc/{name}" for name in (
        "cpuinfo", "filesystems", "loadavg", "meminfo", "stat", "uptime", "version", "vmstat",
        "sys/kernel/osrelease", "sys/kernel/ostype", "sys/kernel/pid_max", "sys/kernel/random/uuid",
        "sys/vm/overcommit_memory",
    )),
    "/sys/devices/system/cpu",
)  # fmt: skip
_SECONDS = 20.0
_TRIAL = "echo tried > file && chmod 600 file"


class ConfinementRules(TypedDict):
    """The limits of one program."""

    level: Literal["bubblewrap", "landlock"]
    bwrap: str  # path of bubblewrap; empty for Landlock
    read: list[str]
    write: list[str]
    network: bool
    temp: str  # where the program's own temporary directory is created


def make_rules(
    level: Literal["bubblewrap", "landlock"],
    *,
    read: Iterable[str | Path] = (),
    write: Iterable[str | Path] = (),
    network: bool = False,
    hidden: Sequence[Path] = (),
) -> ConfinementRules:
    """Return rules that also allow reading the system's software, but none of the hidden directories."""
    return ConfinementRules(
        level=level,
        bwrap=find_bubblewrap() or "",
        read=[*_system(tuple(hidden)), *_spellings(read)],
        write=_spellings(write),
        network=network,
        temp=os.path.realpath(tempfile.gettempdir()),
    )


def _spellings(paths: Iterable[str | Path]) -> list[str]:
    """Return paths as given and with links resolved: inside bubblewrap, a path exists only as it was bound."""
    return list(dict.fromkeys(each for path in paths for each in (str(path), os.path.realpath(path))))


def find_bubblewrap() -> str | None:
    """Return the path of bubblewrap, or None."""
    return which("bwrap", path=SEARCH_PATH)


@cache
def _system(hidden: tuple[Path, ...]) -> tuple[str, ...]:
    """Return the readable paths of the system.

    Landlock and bubblewrap have no exceptions, so a directory with a hidden one below it is listed entry by entry.
    """
    resolved = [path.resolve() for path in hidden]
    return tuple(str(found) for path in SYSTEM for found in without_hidden(Path(path), resolved))


def without_hidden(path: Path, hidden: Sequence[Path]) -> list[Path]:
    """Return a path, or the paths below it that have nothing hidden in them."""
    if not os.access(path, os.R_OK):
        return []
    real = path.resolve()
    if any(real == each or each in real.parents for each in hidden):
        return []
    if any(real in each.parents for each in hidden):
        return [found for entry in sorted(path.iterdir()) for found in without_hidden(entry, hidden)]
    return [path]


@cache
def find_confinement() -> Confinement:
    """Try the levels, the strongest first, with a program that does nothing. Takes up to half a second, once."""
    problems: list[str] = []
    levels: tuple[Literal["bubblewrap", "landlock"], ...] = ("bubblewrap", "landlock")
    for level in levels:
        problem = try_level(level)
        if problem is None:
            return Confinement(level=level, problems=tuple(problems))
        problems.append(f"{level}: {problem}")
    return Confinement(level="none", problems=tuple(problems))


def try_level(level: Literal["bubblewrap", "landlock"]) -> str | None:
    """Return why a level does not work here, or None if it does."""
    if sys.platform != "linux":
        return "needs Linux"
    if level == "bubblewrap" and find_bubblewrap() is None:
        return "not installed"
    with tempfile.TemporaryDirectory(prefix="wakeful-try-") as folder:
        try:
            tried = subprocess.run(
                guarded("/bin/sh", "-c", _TRIAL, rules=make_rules(level, write=[folder])),
                cwd=folder,
                env={},
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=_SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return f"no answer within {_SECONDS:g} seconds"
    said = tried.stderr.decode(errors="replace").strip().splitlines()
    return None if tried.returncode == 0 else said[-1][:300] if said else f"exit code {tried.returncode}"


def log_confinement(found: Confinement, *, is_shell_unconfined: bool) -> None:
    """Log the level at start."""
    fields = {"level": found.level, "problems": "; ".join(found.problems)}
    if found.level == "none":
        log.warning("programs cannot be confined on this machine", extra=fields)
    else:
        log.info("programs are confined", extra=fields)
    if is_shell_unconfined:
        log.warning("shell commands run unconfined", extra={"setting": "shell_unconfined"})
