"""What a confined program may reach: rules as the guard takes them."""

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
    """How the guard confines one program."""

    level: Literal["bubblewrap", "landlock"]
    bwrap: str  # where bubblewrap is; empty for Landlock
    read: list[str]
    write: list[str]
    network: bool
    temp: str  # where the program's own temporary directory is made


def make_rules(
    level: Literal["bubblewrap", "landlock"],
    *,
    read: Iterable[str | Path] = (),
    write: Iterable[str | Path] = (),
    network: bool = False,
    hidden: Sequence[Path] = (),
) -> ConfinementRules:
    """Make rules with the directories of the system to read, and none of the hidden directories among them."""
    return ConfinementRules(
        level=level,
        bwrap=find_bubblewrap() or "",
        read=[*_system(tuple(hidden)), *_spellings(read)],
        write=_spellings(write),
        network=network,
        temp=os.path.realpath(tempfile.gettempdir()),
    )


def _spellings(paths: Iterable[str | Path]) -> list[str]:
    """Return paths as they are and without links: bubblewrap shows nothing under another name."""
    return list(dict.fromkeys(each for path in paths for each in (str(path), os.path.realpath(path))))


def find_bubblewrap() -> str | None:
    """Return where bubblewrap is installed."""
    return which("bwrap", path=SEARCH_PATH)


@cache
def _system(hidden: tuple[Path, ...]) -> tuple[str, ...]:
    """List what of the system can be read. Neither Landlock nor bubblewrap knows exceptions, so the way to a hidden
    directory is listed entry by entry.
    """
    out_of_sight = [path.resolve() for path in hidden]
    return tuple(str(found) for path in SYSTEM for found in _without(Path(path), out_of_sight))


def _without(path: Path, hidden: Sequence[Path]) -> list[Path]:
    if not os.access(path, os.R_OK):
        return []
    real = path.resolve()
    if any(real == each or each in real.parents for each in hidden):
        return []
    if any(real in each.parents for each in hidden):
        return [found for entry in sorted(path.iterdir()) for found in _without(entry, hidden)]
    return [path]
