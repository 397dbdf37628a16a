"""System calls that Python has no function for, and dropping privileges."""

import ctypes
import os

_PR_CAPBSET_DROP = 24
_PR_SET_NO_NEW_PRIVS = 38
_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL = 47, 4
_CAPSET = {"x86_64": 126, "aarch64": 91}
_CAPABILITY_VERSION_3 = 0x20080522
_LAST_CAPABILITY = 63

_libc = ctypes.CDLL(None, use_errno=True)


def system_call(number: int, *arguments: "int | bytes | None") -> int:
    """Make a system call by its number. Raises OSError."""
    given = [ctypes.c_long(each) if isinstance(each, int) else each for each in arguments]
    _libc.syscall.restype = ctypes.c_long
    result = _libc.syscall(ctypes.c_long(number), *given)
    if result < 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))
    return result


def control_process(option: int, *arguments: int) -> None:
    """Call prctl. Raises OSError."""
    padded = [ctypes.c_ulong(each) for each in (*arguments, 0, 0, 0, 0)[:4]]
    if _libc.prctl(option, *padded) < 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))


def refuse_new_privileges() -> None:
    """Make setuid programs run without their owner's rights, as Landlock and seccomp require."""
    control_process(_PR_SET_NO_NEW_PRIVS, 1)


def drop_capabilities() -> None:
    """Drop every capability for good. Children of a server that runs as root would inherit all of them."""
    if os.geteuid() == 0:
        for capability in range(_LAST_CAPABILITY + 1):
            try:
                control_process(_PR_CAPBSET_DROP, capability)
            except OSError:
                break  # beyond the last one of this kernel; one that we may not drop, we do not have
    control_process(_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL)
    header = _CAPABILITY_VERSION_3.to_bytes(4, "little") + bytes(4)
    system_call(_CAPSET[os.uname().machine], header, bytes(24))
