"""Executes chmod, chown and utime for a confined program, on files that it may write.

Landlock does not limit these calls: a confined program of the same user could lock the server out of its own data. So
the filter passes them to the guard, which executes them on a descriptor that it has checked, so that the file cannot be
replaced between the check and the change.
"""

import ctypes
import errno
import fcntl
import os
import struct

from wakeful.sandbox import kernel
from wakeful.sandbox.kernel import system_call

TYPE_CHECKING = False
if TYPE_CHECKING:
    import io
    from collections.abc import Callable

_RECEIVE, _SEND, _IS_VALID = 0xC0502100, 0xC0182101, 0x40082102
_REQUEST = struct.Struct("=QIIiIQ6Q")
_ANSWER = struct.Struct("=QqiI")

_OPENAT2 = 437
_RESOLVE_NO_MAGICLINKS = 0x02  # /proc/self would be that of the guard
_AT_FDCWD = -100
_AT_SYMLINK_NOFOLLOW, _AT_EMPTY_PATH = 0x100, 0x1000
_PATH_MAX = 4096
_UNCHANGED = 0xFFFFFFFF

_libc = ctypes.CDLL(None, use_errno=True)


def supervise(listener: int, write: "list[str]") -> None:
    """Answer calls until the last process with the filter has exited. Runs in a thread of the guard."""
    roots = [os.path.realpath(path) for path in write]
    calls = {kernel.number_of(name): name for name in kernel.SUPERVISED}
    while True:
        request = bytearray(_REQUEST.size)
        try:
            fcntl.ioctl(listener, _RECEIVE, request)
        except OSError as error:
            if error.errno in (errno.EINTR, errno.ENOENT):  # the caller was killed meanwhile
                continue
            return
        number, pid, _, call, _, _, *arguments = _REQUEST.unpack(request)
        try:
            _make(calls[call], pid, arguments, roots, lambda number=number: _check_alive(listener, number))
            refusal = 0
        except OSError as error:
            refusal = error.errno or errno.EPERM
        except Exception:  # noqa: BLE001  (the caller gets EPERM; an unanswered call would hang for ever)
            refusal = errno.EPERM
        try:
            fcntl.ioctl(listener, _SEND, _ANSWER.pack(number, 0, -refusal, 0))
        except OSError:  # the caller is gone
            continue


def _make(call: str, pid: int, arguments: "list[int]", roots: "list[str]", check_alive: "Callable[[], None]") -> None:
    """Execute one call for a process. Raises OSError as the kernel would."""
    base, path_at, rest, flags = _shape(call, arguments)
    with open(f"/proc/{pid}/mem", "rb", buffering=0) as memory:
        path = b"" if path_at is None else _text(memory, path_at)
        times = _times(call, memory, rest)
        check_alive()  # else the id, and the memory, may belong to another process by now
    target = _open(pid, base, path, flags, is_descriptor=path_at is None)
    try:
        shown = os.readlink(f"/proc/self/fd/{target}")
        if not any(shown == root or shown.startswith(root + "/") for root in roots):
            raise PermissionError(errno.EPERM, "outside the directories that it may write")
        name = f"/proc/self/fd/{target}".encode()
        if "chmod" in call:
            os.chmod(name, rest[0] & 0o7777)
        elif "chown" in call:
            os.chown(name, *(-1 if each & _UNCHANGED == _UNCHANGED else each & _UNCHANGED for each in rest[:2]))
        elif _libc.utimensat(_AT_FDCWD, name, times, 0) < 0:
            raise OSError(ctypes.get_errno(), "utimensat")
    finally:
        os.close(target)


def _shape(call: str, arguments: "list[int]") -> "tuple[int, int | None, list[int], int]":
    """Return the directory descriptor of a call, the address of its path, the other arguments, and the flags."""
    if call in ("fchmod", "fchown"):
        return _signed(arguments[0]), None, arguments[1:], 0
    if call in ("chmod", "chown", "lchown", "utime", "utimes"):
        return _AT_FDCWD, arguments[0], arguments[1:], _AT_SYMLINK_NOFOLLOW if call == "lchown" else 0
    flags_at = {"fchmodat2": 3, "fchownat": 4, "utimensat": 3}.get(call)
    flags = 0 if flags_at is None else arguments[flags_at]
    has_path = arguments[1] != 0 or call not in ("utimensat", "futimesat")
    return _signed(arguments[0]), arguments[1] if has_path else None, arguments[2:], flags


def _open(pid: int, base: int, path: bytes, flags: int, *, is_descriptor: bool) -> int:
    """Open the file that a call is about, without read or write access."""
    start = f"/proc/{pid}/cwd" if base == _AT_FDCWD else f"/proc/{pid}/fd/{base}"
    if is_descriptor or (not path and flags & _AT_EMPTY_PATH):
        if base == _AT_FDCWD and is_descriptor:
            raise OSError(errno.EFAULT, "no path")
        return os.open(start, os.O_PATH | os.O_CLOEXEC)
    # The C library uses this path for an open file, where the kernel has no call for a descriptor.
    folder, _, number = path.rpartition(b"/")
    if folder in (b"/proc/self/fd", f"/proc/{pid}/fd".encode()) and number.isdigit():
        return os.open(f"/proc/{pid}/fd/{int(number)}", os.O_PATH | os.O_CLOEXEC)
    how = os.O_PATH | os.O_CLOEXEC | (os.O_NOFOLLOW if flags & _AT_SYMLINK_NOFOLLOW else 0)
    asked = struct.pack("=QQQ", how, 0, _RESOLVE_NO_MAGICLINKS)
    if path.startswith(b"/"):
        return system_call(_OPENAT2, _AT_FDCWD, path, asked, len(asked))
    directory = os.open(start, os.O_PATH | os.O_CLOEXEC)
    try:
        return system_call(_OPENAT2, directory, path, asked, len(asked))
    finally:
        os.close(directory)


def _times(call: str, memory: "io.FileIO", rest: "list[int]") -> "bytes | None":
    """Read the two times of a call, in the format of utimensat; None: now."""
    if "utime" not in call or rest[0] == 0:
        return None
    memory.seek(rest[0])
    if call == "utime":
        accessed, modified = struct.unpack("=qq", memory.read(16))
        return struct.pack("=qqqq", accessed, 0, modified, 0)
    times = struct.unpack("=qqqq", memory.read(32))
    if call != "utimensat":  # microseconds
        times = (times[0], times[1] * 1000, times[2], times[3] * 1000)
    return struct.pack("=qqqq", *times)


def _text(memory: "io.FileIO", address: int) -> bytes:
    """Read a path, page by page: the next page need not be mapped."""
    text = b""
    while len(text) < _PATH_MAX:
        memory.seek(address + len(text))
        piece = memory.read(_PATH_MAX - (address + len(text)) % _PATH_MAX)
        end = piece.find(b"\0")
        if end >= 0:
            return text + piece[:end]
        if not piece:
            raise OSError(errno.EFAULT, "no path")
        text += piece
    raise OSError(errno.ENAMETOOLONG, "path too long")


def _check_alive(listener: int, number: int) -> None:
    fcntl.ioctl(listener, _IS_VALID, struct.pack("=Q", number))


def _signed(value: int) -> int:
    value &= 0xFFFFFFFF
    return value - (1 << 32) if value >= 1 << 31 else value
