"""Landlock: limits the files that a process and its children can open, and the processes they can signal."""

import errno
import os
import stat
import struct

from wakeful.tools.confinement.kernel import system_call

NEEDED_ABI = 6  # Linux 6.12, the first that can limit signals

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_CREATE_RULESET_VERSION = 1
_RULE_PATH_BENEATH = 1

_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
_MAKE_CHAR, _MAKE_SOCK, _MAKE_BLOCK = 1 << 6, 1 << 9, 1 << 11
_TRUNCATE, _IOCTL_DEV = 1 << 14, 1 << 15
_EVERYTHING = (1 << 16) - 1
_FOR_FILES = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE | _IOCTL_DEV

READ = _EXECUTE | _READ_FILE | _READ_DIR
# A device node, which root can create, would give access to the disk itself.
WRITE = _EVERYTHING & ~(_MAKE_CHAR | _MAKE_BLOCK | _MAKE_SOCK | _IOCTL_DEV)
DEVICE = _READ_FILE | _WRITE_FILE | _IOCTL_DEV
DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")

_TCP = 0b11  # bind and connect
_ABSTRACT_SOCKETS_AND_SIGNALS = 0b11


def abi() -> int:
    """Return the version of Landlock in this kernel; 0: none."""
    try:
        return system_call(_CREATE_RULESET, None, 0, _CREATE_RULESET_VERSION)
    except OSError:
        return 0


def restrict(read: "list[str]", write: "list[str]", *, is_network_allowed: bool) -> None:
    """Confine this process for good. Raises OSError if a path cannot be opened or a rule is refused."""
    if abi() < NEEDED_ABI:
        raise OSError(errno.ENOSYS, f"the kernel has Landlock ABI {abi()}, and {NEEDED_ABI} is needed (Linux 6.12)")
    handled = struct.pack("=QQQ", _EVERYTHING, 0 if is_network_allowed else _TCP, _ABSTRACT_SOCKETS_AND_SIGNALS)
    ruleset = system_call(_CREATE_RULESET, handled, len(handled), 0)
    try:
        for access, paths in ((READ, read), (WRITE, write), (DEVICE, DEVICES)):
            for path in paths:
                _allow(ruleset, path, access)
        system_call(_RESTRICT_SELF, ruleset, 0)
    finally:
        os.close(ruleset)


def _allow(ruleset: int, path: str, access: int) -> None:
    opened = os.open(path, os.O_PATH | os.O_CLOEXEC)
    try:
        if not stat.S_ISDIR(os.fstat(opened).st_mode):
            access &= _FOR_FILES
        system_call(_ADD_RULE, ruleset, _RULE_PATH_BENEATH, struct.pack("=Qi", access, opened), 0)
    finally:
        os.close(opened)
