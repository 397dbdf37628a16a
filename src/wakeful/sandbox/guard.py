"""Runs a program, and kills it and all its descendants when the server exits, also when the server is killed.

It is a script of its own, which imports only the standard library and the modules beside it that it needs:
`guard.py SERVER-PID RULES PROGRAM ARGUMENT…`. The rules are JSON; with `null` the program runs unconfined. They are
applied to the program, not to its guard, and if one cannot be applied the program is not started.
"""

import _thread
import ctypes
import json
import os
import resource
import signal
import sys
import time

TYPE_CHECKING = False  # importing `typing` and `pathlib` takes longer than most commands
if TYPE_CHECKING:
    import _socket
    from typing import NoReturn

    from wakeful.sandbox.rules import ConfinementRules

_IS_LINUX = sys.platform == "linux"
_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_SIGNALS = {signal.SIGTERM, signal.SIGCHLD}
_MAX_ROUNDS = 500
_NOT_CONFINED, _NOT_STARTED = 126, 127


def guarded(*command: str, rules: "ConfinementRules | None") -> list[str]:
    """Return the command line that runs a command under a guard; without rules it is not confined."""
    return [sys.executable, "-I", "-S", __file__, str(os.getpid()), json.dumps(rules), *command]


def main(server: int, rules: "ConfinementRules | None", command: list[str]) -> int:
    """Run a command until it exits or we get SIGTERM; return the exit code."""
    # Blocked, for sigwait: a handler could run just before we wait, and the wait would miss it.
    signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
    if _IS_LINUX:
        libc = ctypes.CDLL(None)
        # A process that leaves the group, as daemons do, becomes our child when its parent exits, so we can kill it.
        libc.prctl(_PR_SET_CHILD_SUBREAPER, 1)
        libc.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
    else:
        _thread.start_new_thread(_watch_parent, (server,))
    if os.getppid() != server:  # it exited before the prctl
        return 1
    temp = None
    try:
        temp = None if rules is None else _make_temp(rules)
        child = _start(rules, temp, command)
        nothing = os.open(os.devnull, os.O_RDWR)
        for descriptor in (0, 1, 2):  # else the pipes would stay open after the program closes them
            os.dup2(nothing, descriptor)
        status = _wait(child)
        if _IS_LINUX:
            _kill_all()
        else:
            _kill_group(child)
    except OSError as error:
        os.write(2, f"{command[0]} cannot be started: {error.strerror}\n".encode())
        return _NOT_STARTED
    finally:
        if temp is not None:
            _remove(temp)
    code = -signal.SIGTERM if status is None else os.waitstatus_to_exitcode(status)
    return code if code >= 0 else _die_of(-code)


def _start(rules: "ConfinementRules | None", temp: str | None, command: list[str]) -> int:
    """Start the program, confined by the rules if there are any, and return its process id. Raises OSError."""
    if rules is None or temp is None:
        return _spawn(command)
    if rules["level"] == "bubblewrap":
        return _start_in_bubblewrap(rules, temp, command)
    return _start_in_landlock({**rules, "write": [*rules["write"], temp]}, command)


def _spawn(command: list[str]) -> int:
    defaults = [signal.SIGPIPE, signal.SIGXFSZ]
    if _IS_LINUX:
        return os.posix_spawnp(command[0], command, os.environ, setsigmask=[], setsigdef=defaults)
    # A process group of its own: killing ours would kill us before we can return the exit code.
    return os.posix_spawnp(command[0], command, os.environ, setpgroup=0, setsigmask=[], setsigdef=defaults)


def _start_in_bubblewrap(rules: "ConfinementRules", temp: str, command: list[str]) -> int:
    from wakeful.sandbox.kernel import make_filter, wrapped

    descriptor = os.memfd_create("filter", 0)
    os.write(descriptor, make_filter(is_network_allowed=rules["network"], has_own_files=True))
    os.lseek(descriptor, 0, os.SEEK_SET)
    try:
        return _spawn([*wrapped(rules, temp, descriptor, os.getcwd()), *command])
    finally:
        os.close(descriptor)


def _start_in_landlock(rules: "ConfinementRules", command: list[str]) -> int:
    """Fork, confine the child and execute the program in it. We have one thread, so Python can run after the fork."""
    import _socket

    from wakeful.sandbox.kernel import drop_capabilities
    from wakeful.sandbox.supervisor import supervise

    drop_capabilities()  # of the guard too: it changes files for the program
    ours, theirs = _socket.socketpair(_socket.AF_UNIX, _socket.SOCK_STREAM)
    child = os.fork()
    if child == 0:
        _become(rules, command, theirs)
    theirs.close()
    _, carried, _, _ = ours.recvmsg(1, _socket.CMSG_SPACE(4))
    ours.close()
    if carried:  # else it could not be confined, has written the reason to stderr, and exited
        listener = int.from_bytes(carried[0][2], sys.byteorder)
        _thread.start_new_thread(supervise, (listener, rules["write"]))
    return child


def _become(rules: "ConfinementRules", command: list[str], guard: "_socket.socket") -> "NoReturn":
    import _socket

    from wakeful.sandbox import kernel

    # os.execvpe calls this too, and it imports a module: once confined, we may not read Python's own library.
    os.get_exec_path()
    try:
        kernel.refuse_new_privileges()
        program = kernel.make_filter(is_network_allowed=rules["network"], has_own_files=False)
        kernel.restrict_files(rules["read"], rules["write"], is_network_allowed=rules["network"])
        listener = kernel.install_filter(program, has_listener=True)
        passed = listener.to_bytes(4, sys.byteorder)
        guard.sendmsg([b"."], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, passed)])
        os.close(listener)
        for number in (signal.SIGPIPE, signal.SIGXFSZ):
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
    except BaseException as error:  # noqa: BLE001  (whatever failed, the program must not run half confined)
        os.write(2, f"{command[0]} cannot be confined, so it is not started: {error}\n".encode())
        os._exit(_NOT_CONFINED)
    try:
        os.execvpe(command[0], command, os.environ)
    except OSError as error:
        os.write(2, f"{command[0]} cannot be started: {error.strerror}\n".encode())
    os._exit(_NOT_STARTED)


def _make_temp(rules: "ConfinementRules") -> str:
    """Create a temporary directory for the program alone."""
    path = f"{rules['temp']}/wakeful-{os.urandom(8).hex()}"
    os.mkdir(path, 0o700)
    os.environ["TMPDIR"] = path
    return path


def _remove(directory: str) -> None:
    try:
        os.rmdir(directory)
    except OSError:
        import shutil

        try:
            _make_writable(directory)
            shutil.rmtree(directory, ignore_errors=True)
        except (OSError, RecursionError):  # the rest stays in the system's temporary directory, which is cleaned anyway
            return


def _make_writable(directory: str) -> None:
    os.chmod(directory, 0o700)
    with os.scandir(directory) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                _make_writable(entry.path)


def _wait(child: int) -> int | None:
    """Return the exit status of the program; None: we got SIGTERM first."""
    while signal.sigwait(_SIGNALS) != signal.SIGTERM:
        status = _reap(child)
        if status is not None:
            return status
    return None


def _reap(child: int) -> int | None:
    """Reap exited children, and return the exit status of the program if it is among them."""
    while True:
        ended, status = os.waitpid(-1, os.WNOHANG)
        if ended == child:
            return status
        if ended == 0:
            return None


def _die_of(number: int) -> "NoReturn":
    """Die of the same signal as the program, so that our parent sees it."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if number not in (signal.SIGKILL, signal.SIGSTOP):
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {number})
    os.kill(os.getpid(), number)
    os._exit(128 + number)  # if the signal does not end a process


def _kill_all() -> None:
    """Kill our children until there are none; the children of a killed one become ours."""
    for _ in range(_MAX_ROUNDS):
        try:
            with open(f"/proc/self/task/{os.getpid()}/children", encoding="ascii") as file:
                children = file.read().split()
        except OSError:  # no such file on this system: kill our process group, which includes us
            os.killpg(0, signal.SIGKILL)
            return
        if not children:
            return
        for pid in children:
            try:
                os.kill(int(pid), signal.SIGKILL)
                os.waitpid(int(pid), os.WNOHANG)
            except (ProcessLookupError, ChildProcessError):  # it has exited
                pass
        time.sleep(0.005)


def _kill_group(child: int) -> None:
    """Kill the program's process group, on systems where we cannot find processes that left it."""
    try:
        os.killpg(child, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):  # no process is left, or none that we may kill
        return


def _watch_parent(server: int) -> None:
    """Send ourselves SIGTERM when the server has exited, on systems that do not do it for us."""
    while os.getppid() == server:
        time.sleep(0.5)
    os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    # Last, so that the standard library comes first.
    sys.path.append(__file__[: -len("/wakeful/sandbox/guard.py")])
    sys.exit(main(int(sys.argv[1]), json.loads(sys.argv[2]), sys.argv[3:]))
