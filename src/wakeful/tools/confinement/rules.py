"""Rules for the guard: what a confined program may read, write and connect to."""

import os
import tempfile
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from shutil import which
from typing import Literal, TypedDict

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
