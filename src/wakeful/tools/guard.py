"""Runs a program, and takes it and everything it has started along when the server is gone, however that ended.

Started as a script of its own, with nothing but the standard library: `guard.py SERVER-PID PROGRAM ARGUMENT…`.
"""

import ctypes
import os
import resource
import signal
import sys
import time

TYPE_CHECKING = False  # `typing` and `pathlib` would take longer to import than most commands last
if TYPE_CHECKING:
    from typing import NoReturn

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_HEARD = {signal.SIGTERM, signal.SIGCHLD}
_MOST_ROUNDS = 500


def guarded(*command: str) -> list[str]:
    """Return how this process starts a command under a guard."""
    return [sys.executable, "-I", "-S", __file__, str(os.getpid()), *command]


def main(server: int, command: list[str]) -> int:
    """Run a command to its end, or to ours."""
    libc = ctypes.CDLL(None)
    # What leaves the group, as daemons do, becomes our child when its parent ends, so nothing gets away.
    libc.prctl(_PR_SET_CHILD_SUBREAPER, 1)
    # Waited for, not handled: a handler that runs just before we wait for the program would leave us waiting.
    signal.pthread_sigmask(signal.SIG_BLOCK, _HEARD)
    libc.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != server:  # it died before we had said that we want to know
        return 1
    try:
        child = os.posix_spawnp(
            command[0], command, os.environ, setsigmask=[], setsigdef=[signal.SIGPIPE, signal.SIGXFSZ]
        )
    except OSError as error:
        os.write(2, f"{command[0]} cannot be started: {error.strerror}\n".encode())
        return 127
    nothing = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):  # else the pipes would stay open when the program closes them
        os.dup2(nothing, descriptor)
    while signal.sigwait(_HEARD) != signal.SIGTERM:
        status = _reap(child)
        if status is not None:
            _kill_all()
            code = os.waitstatus_to_exitcode(status)
            return code if code >= 0 else _die_of(-code)
    _kill_all()
    return _die_of(signal.SIGTERM)


def _reap(child: int) -> int | None:
    """Bury whoever has ended, and return how the program did, if it is among them."""
    while True:
        ended, status = os.waitpid(-1, os.WNOHANG)
        if ended == child:
            return status
        if ended == 0:
            return None


def _die_of(number: int) -> "NoReturn":
    """End as the program did, so that whoever waits for us learns how."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if number not in (signal.SIGKILL, signal.SIGSTOP):
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {number})
    os.kill(os.getpid(), number)
    os._exit(128 + number)  # by a signal that ends nobody


def _kill_all() -> None:
    """Kill our children until there are none; those of a child that died become ours."""
    for _ in range(_MOST_ROUNDS):
        try:
            with open(f"/proc/self/task/{os.getpid()}/children", encoding="ascii") as file:  # noqa: PTH123
                children = file.read().split()
        except OSError:  # a system that does not tell: then at least everything in our group, and ourselves
            os.killpg(0, signal.SIGKILL)
            return
        if not children:
            return
        for pid in children:
            try:
                os.kill(int(pid), signal.SIGKILL)
                os.waitpid(int(pid), os.WNOHANG)
            except (ProcessLookupError, ChildProcessError):
                pass
        time.sleep(0.005)


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), sys.argv[2:]))
