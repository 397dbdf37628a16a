"""Limits of a confined command, tried for real on each level, as root and as an ordinary user."""

import os
import shutil
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from confined import LEVELS, at_level
from harness import tool_context
from wakeful.sandbox import guard
from wakeful.sandbox.guard import guarded
from wakeful.sandbox.rules import make_rules
from wakeful.sandbox.shell import ShellSettings, shell_tools
from wakeful.toolbox.registry import Tools

pytestmark = pytest.mark.security

SECRET = "the-device-key"


@pytest.fixture(params=LEVELS)
def level(request):
    return request.param


@pytest.fixture
def place(tmp_path):
    """A data directory and a config directory as a server has them, and the workspace of one agent."""
    for name in ("data/agents/one/workspace", "data/agents/two/workspace", "config"):
        (tmp_path / name).mkdir(parents=True)
    for name in ("config/device.key", "config/token", "data/agents/one/db.key", "data/agents/two/workspace/notes"):
        (tmp_path / name).write_text(SECRET)
        (tmp_path / name).chmod(0o600)
    return tmp_path


@pytest.fixture
def context(place):
    return tool_context(place / "data/agents/one/workspace", "shell")


@pytest.fixture
def run(level, context, place):
    return runner(level, context, hidden=(place / "data", place / "config"))


def runner(level, context, **settings):
    tools = Tools(shell_tools(ShellSettings(confinement=at_level(level), **settings)))

    async def run(command, **more):
        result = await tools.call("run_command", {"command": command, **more}, context)
        assert result.success, result.text
        return result.text

    return run


def script(context, text: str) -> str:
    """Put a Python program into the workspace and return the command that runs it."""
    context.workspace.mkdir(parents=True, exist_ok=True)
    (context.workspace / "script.py").write_text(text)
    return "python3 script.py"


# ── Files ───────────────────────────────────────────────────────────────────────────────────────────────────────────


SECRETS = ("config/device.key", "config/token", "data/agents/one/db.key", "data/agents/two/workspace/notes")


def facts(place) -> list[tuple[str, int, int, float, str]]:
    """Everything about the server's files but the time they were last read."""
    files = [
        place / "config",
        place / "data",
        *(path for name in ("config", "data/agents/two") for path in (place / name).rglob("*")),
    ]
    return [
        (
            str(path),
            (about := path.stat()).st_mode,
            about.st_nlink,
            about.st_mtime,
            path.read_text() if path.is_file() else "",
        )
        for path in sorted(files)
    ]


@pytest.mark.parametrize(
    "way",
    [
        "cat $f",
        "cp $f copy && cat copy",
        "ln -s $f link; cat link",
        "ln $f hard; cat hard",
        "mv $f moved; cat moved",
        "(cd $(dirname $f) && cat $(basename $f))",
        "cat /proc/self/root$f /proc/1/root$f /proc/$PPID/root$f",
        "echo more >> $f; truncate -s 0 $f; rm -f $f; mkdir $f.d",
        "chmod 777 $f; chmod 777 $(dirname $f); touch -d 2001-01-01 $f; setfattr -n user.x -v 1 $f",
        "unshare -Ur cat $f; unshare -m true; chroot / cat $f",
        "tar cf - $f",
    ],
)
async def test_no_way_leads_to_the_servers_files(run, place, way):
    before = facts(place)
    said = await run(f"for f in {' '.join(str(place / name) for name in SECRETS)}; do {way}; done 2>&1")
    assert SECRET not in said
    assert facts(place) == before


@pytest.mark.parametrize("path", ["/etc/shadow", "/root/.bashrc", "/var/log", "/home", "/tmp", "/run", "/boot", "/etc"])
async def test_nothing_else_of_the_machine_can_be_listed_or_read(run, path):
    text = await run(f"ls -A {path} && cat {path}")
    assert not text.startswith("Exit code 0.")


def modes(*paths: str) -> list[int | None]:
    return [Path(path).stat().st_mode if Path(path).exists() else None for path in paths]


async def test_system_directories_cannot_be_changed(run):
    watched = ("/usr/bin/x", "/etc/x", "/x", "/etc/passwd", "/usr", "/usr/bin/env")
    before = modes(*watched)
    await run("touch /usr/bin/x /etc/x /x; chmod 777 /etc/passwd /usr /usr/bin/env; rm -f /usr/bin/env")
    assert modes(*watched) == before


OPENED_FOR_READING = """
import os
for path in ("/usr/bin/env", "/etc/passwd", "/usr"):
    for change in (lambda fd: os.fchmod(fd, 0o777), lambda fd: os.utime(fd, (1, 1)), lambda fd: os.fchown(fd, 1, 1)):
        descriptor = os.open(path, os.O_RDONLY)
        try:
            change(descriptor)
            print("changed", path)
        except OSError:
            pass
"""


async def test_a_file_that_can_only_be_read_keeps_its_mode_owner_and_times(run, context):
    assert await run(script(context, OPENED_FOR_READING)) == "Exit code 0.\n(no output)"


async def test_directories_of_the_server_are_hidden_though_they_lie_in_a_system_directory(tmp_path):
    for name in ("usr/bin", "usr/share/wakeful/data", "usr/share/doc"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "usr/share/alias").symlink_to(tmp_path / "usr/share/wakeful/data")
    from wakeful.sandbox.rules import without_hidden

    shown = without_hidden(tmp_path / "usr", [tmp_path / "usr/share/wakeful/data"])
    assert [str(path.relative_to(tmp_path)) for path in shown] == ["usr/bin", "usr/share/doc"]


async def test_a_device_cannot_be_made(run, context):
    await run("mknod disk b 254 0; mknod memory c 1 1; mknod null c 1 3")
    assert not any(path.is_block_device() or path.is_char_device() for path in context.workspace.iterdir())


# ── Processes ───────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_environment_memory_and_open_files_of_the_server_are_out_of_reach(run):
    pid = os.getpid()
    names = ("environ", "mem", "maps", "cmdline", "auxv", "cwd/pyproject.toml", "exe", "root/etc/shadow", "fd/0")
    paths = " ".join(f"/proc/{pid}/{name}" for name in names)
    said = await run(f"for path in {paths}; do head -c 20 $path && echo read $path; done 2>/dev/null")
    assert said == "Exit code 1.\n(no output)"
    assert not (await run(f"ls /proc/{pid}/fd /proc/{pid}/task")).startswith("Exit code 0.")


@pytest.fixture
def stranger():
    """A process of the same user that the command has nothing to do with."""
    with subprocess.Popen(["sleep", "600"]) as process:
        yield process
        process.kill()


SIGNALS = """
import ctypes, os, resource, signal, sys
pid = int(sys.argv[1])
libc = ctypes.CDLL(None, use_errno=True)
def attempt(name, act):
    try:
        act()
        print("did", name)
    except OSError:
        pass
def checked(number, *arguments):
    if libc.syscall(number, *arguments) < 0:
        raise OSError(ctypes.get_errno(), "refused")
attempt("kill", lambda: os.kill(pid, signal.SIGTERM))
attempt("probe", lambda: os.kill(pid, 0))
attempt("tgkill", lambda: checked(234, pid, pid, 15))
attempt("queue", lambda: checked(129, pid, 15, bytes(128)))
attempt("pidfd", lambda: signal.pidfd_send_signal(os.pidfd_open(pid), signal.SIGTERM))
attempt("limit", lambda: resource.prlimit(pid, resource.RLIMIT_CPU, (0, 0)))
attempt("nice", lambda: os.setpriority(os.PRIO_PROCESS, pid, 19))
attempt("scheduler", lambda: os.sched_setscheduler(pid, os.SCHED_IDLE, os.sched_param(0)))
attempt("ptrace", lambda: checked(101, 16, pid, 0, 0))
def own():
    import fcntl
    read, write = os.pipe()
    fcntl.fcntl(read, fcntl.F_SETOWN, pid)
    fcntl.fcntl(read, fcntl.F_SETSIG, signal.SIGTERM)
    fcntl.fcntl(read, fcntl.F_SETFL, fcntl.fcntl(read, fcntl.F_GETFL) | os.O_ASYNC)
    os.write(write, b"x")
try:
    own()
except OSError:
    pass
"""


def limits_of(process) -> str:
    return Path(f"/proc/{process.pid}/limits").read_text()


async def test_no_signal_and_no_limit_reaches_a_process_outside(run, context, stranger):
    before = limits_of(stranger)
    assert await run(f"{script(context, SIGNALS)} {stranger.pid}") == "Exit code 0.\n(no output)"
    assert await run(f"kill -KILL {stranger.pid}; kill -KILL -{os.getpgid(stranger.pid)}; echo tried") != ""
    assert stranger.poll() is None
    assert limits_of(stranger) == before
    assert os.getpriority(os.PRIO_PROCESS, stranger.pid) == os.getpriority(os.PRIO_PROCESS, 0)


async def test_the_server_itself_cannot_be_signalled(run):
    text = await run(f"kill -0 {os.getpid()}; echo $?")
    assert text.endswith("\n1")


async def test_the_guard_cannot_be_killed(run):
    assert (await run("kill -KILL $PPID; kill -KILL 0; echo alive")).startswith(
        ("Exit code 0.", "Killed", "Exit code 137")
    )


async def test_a_command_can_signal_what_it_has_started(run):
    assert (await run("sleep 60 & kill $!; wait $!; echo $?")).endswith("143")


# ── Sockets ─────────────────────────────────────────────────────────────────────────────────────────────────────────

CONNECT = """
import socket, sys
def attempt(name, act):
    try:
        act()
        print("did", name)
    except OSError:
        pass
path, abstract, port = sys.argv[1], "\\0" + sys.argv[2], int(sys.argv[3])
def datagram_pair(address):
    one, _ = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    one.connect(address)
    one.send(b"x")
def unix(address, kind):
    with socket.socket(socket.AF_UNIX, kind) as each:
        each.connect(address)
for name, address in (("path", path), ("abstract", abstract), ("datagram path", path + ".dgram")):
    attempt(name, lambda: unix(address, socket.SOCK_DGRAM if name.startswith("datagram") else socket.SOCK_STREAM))
attempt("pair", lambda: datagram_pair(path + ".dgram"))
attempt("tcp", lambda: socket.create_connection(("127.0.0.1", port), 2))
attempt("udp", lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"x", ("127.0.0.1", port)))
attempt("tcp6", lambda: socket.create_connection(("::1", port), 2))
attempt("packet", lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW))
attempt("crypto", lambda: socket.socket(socket.AF_ALG, socket.SOCK_SEQPACKET))
attempt("vsock", lambda: socket.socket(socket.AF_VSOCK, socket.SOCK_STREAM))
ours, theirs = socket.socketpair()
ours.send(b"pair works")
print(theirs.recv(20).decode())
"""


@pytest.fixture
def listeners(tmp_path):
    """Sockets of every kind that a program outside listens on; returns the words that name them."""
    path, abstract = tmp_path / "s", f"wakeful-test-{os.getpid()}"
    kinds = [
        (socket.AF_UNIX, socket.SOCK_STREAM, str(path)),
        (socket.AF_UNIX, socket.SOCK_DGRAM, f"{path}.dgram"),
        (socket.AF_UNIX, socket.SOCK_STREAM, f"\0{abstract}"),
        (socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", 0)),
    ]
    opened = [socket.socket(family, kind) for family, kind, _ in kinds]
    for each, (_, kind, address) in zip(opened, kinds, strict=True):
        each.bind(address)
        if kind == socket.SOCK_STREAM:
            each.listen()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as datagrams:
        datagrams.bind(opened[-1].getsockname())
        yield f"{path} {abstract} {opened[-1].getsockname()[1]}"
    for each in opened:
        each.close()


def test_the_sockets_of_this_test_can_be_reached_from_outside(tmp_path, listeners):
    (tmp_path / "script.py").write_text(CONNECT)
    command = [sys.executable, tmp_path / "script.py", *listeners.split()]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    for kind in ("path", "abstract", "datagram path", "pair", "tcp", "udp"):
        assert f"did {kind}\n" in said


async def test_no_socket_outside_can_be_reached(run, context, listeners):
    said = await run(f"{script(context, CONNECT)} {listeners}")
    # In bubblewrap a datagram may be sent to a loopback of its own, where nobody listens.
    assert [line for line in said.splitlines()[1:] if line != "did udp"] == ["pair works"]


async def test_with_network_addresses_can_be_reached_and_unix_sockets_still_not(level, context, listeners):
    run = runner(level, context, has_network=True)
    said = await run(f"{script(context, CONNECT)} {listeners}")
    assert said.splitlines()[1:] == ["did tcp", "did udp", "pair works"]


# ── The kernel ──────────────────────────────────────────────────────────────────────────────────────────────────────

CALLS = """
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
for name, number, *arguments in (
    ("io_uring_setup", 425, 8, bytes(120)), ("keyctl", 250, 0, -3, 1), ("add_key", 248, b"user", b"x", b"y", 1, -3),
    ("bpf", 321, 0, bytes(128), 128), ("userfaultfd", 323, 0), ("perf_event_open", 298, bytes(128), 0, -1, -1, 0),
    ("unshare", 272, 0x10000000), ("mount", 165, b"none", b"/tmp", b"tmpfs", 0, 0), ("shmget", 29, 0, 4096, 0o1600),
    ("process_vm_readv", 310, os.getppid(), 0, 0, 0, 0, 0), ("clone3", 435, bytes(88), 88),
    ("mq_open", 240, b"x", 64, 384, 0),
    ("a call of tomorrow", 500), ("the x32 ABI", 0x40000000 + 39), ("msgget", 68, 0, 0o1600),
):
    if libc.syscall(number, *arguments) >= 0:
        print("did", name)
"""


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="the numbers are those of x86_64")
async def test_calls_that_go_round_the_walls_are_refused(run, context):
    assert await run(script(context, CALLS)) == "Exit code 0.\n(no output)"


HAS_CAPABILITIES = """
import ctypes, os, struct
libc, sets = ctypes.CDLL(None), ctypes.create_string_buffer(24)
capget = {"x86_64": 125, "aarch64": 90}[os.uname().machine]
assert libc.syscall(capget, struct.pack("II", 0x20080522, 0), sets) == 0
print(sets.raw.hex(), libc.prctl(39, 0, 0, 0, 0))
"""


async def test_there_are_no_capabilities_even_for_root_and_none_can_be_gained(run, context):
    assert await run(script(context, HAS_CAPABILITIES)) == f"Exit code 0.\n{'0' * 48} 1"


# ── Failing closed ──────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "change", [{"write": ["/no/such/place"]}, {"read": ["/no/such/place"]}, {"bwrap": "/no/bwrap"}]
)
def test_a_rule_that_cannot_be_applied_keeps_the_program_from_running(level, tmp_path, change):
    if "bwrap" in change and level == "landlock":
        change = {"temp": "/no/such/place"}
    rules = make_rules(level, write=[tmp_path]) | change
    done = subprocess.run(
        guarded("/bin/sh", "-c", f"touch {tmp_path}/ran", rules=rules), cwd=tmp_path, capture_output=True, check=False
    )
    assert done.returncode != 0
    assert done.stderr
    assert not (tmp_path / "ran").exists()


# ── What works ──────────────────────────────────────────────────────────────────────────────────────────────────────

COMMIT = """
git init -q -b main . && git config user.email a@b && git config user.name A && echo 1 > f && git add . &&
git commit -qm one && git clone -q . copy && git -C copy log --format=%s
"""
PYTHON = """python3 -c '
import json, sqlite3, subprocess, tempfile, threading
with tempfile.TemporaryDirectory() as folder:
    sqlite3.connect(folder + "/db").execute("create table t (x)")
thread = threading.Thread(target=print, args=["thread"])
thread.start()
thread.join()
print(subprocess.check_output(["echo", "child"]).decode())
'"""
BUILD = "printf '#include <stdio.h>\\nint main(){puts(\"built\");}' > m.c && gcc -o m m.c && ./m"
TYPICAL = {
    "pipes": ("printf 'b\\na\\n' | sort | tee sorted | head -1; cat sorted", "a\na\nb"),
    "temporary files": ("f=$(mktemp) && echo text > $f && cat $f && rm $f", "text"),
    "files": ("mkdir -p a/b && echo 1 > a/b/c && mv a/b/c a/d && cp -a a e && ls e && rm -r a e", "b\nd"),
    "chmod": ("echo 'echo run' > s && chmod +x s && ./s && stat -c %a s", "run\n755"),
    "touch": ("touch -d 2001-02-03T04:05:06Z f && stat -c %Y f", "981173106"),
    "times of a link": ("ln -s none l && touch -h -d @5 l && stat -c %Y l", "5"),
    "own owner": ("touch f && chown $(id -u):$(id -g) f && echo done", "done"),
    "relative paths": ("mkdir d && cd d && echo x > f && chmod 640 ../d/f && stat -c %a f", "640"),
    "tar": ("mkdir t && echo x > t/f && tar czf t.tgz t && rm -r t && tar xzf t.tgz && cat t/f", "x"),
    "text": ("echo text | sed s/t/T/ | awk '{print $1}' | grep -c T", "1"),
    "python": (PYTHON, "thread\nchild"),
    "process substitution": ("bash -c 'cat <(echo a) <(echo b)'", "a\nb"),
    "limits": (
        "nice -n 5 true && timeout 5 true && ulimit -c 0 && id -un > /dev/null && date > /dev/null; echo $?",
        "0",
    ),
    "git": (COMMIT, "one"),
    "gcc": (BUILD, "built"),
}


@pytest.mark.parametrize("name", TYPICAL)
async def test_typical_programs_work(run, name):
    if name in ("git", "gcc") and shutil.which(name) is None:
        pytest.skip(f"{name} is not installed")
    command, said = TYPICAL[name]
    assert await run(command) == f"Exit code 0.\n{said}"


async def test_the_temporary_directory_is_gone_afterwards(run, tmp_path, monkeypatch):
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    said = await run("mkdir -p $TMPDIR/a/b && echo kept > $TMPDIR/a/b/c && chmod 500 $TMPDIR/a/b && cat $TMPDIR/a/b/c")
    assert said == "Exit code 0.\nkept"
    assert list((tmp_path / "temporary").iterdir()) == []


# ── As an ordinary user ─────────────────────────────────────────────────────────────────────────────────────────────

NOBODY = 65534
ORDINARY = """
id -u
echo 'echo run' > s && chmod +x s && ./s
cat {key} || chmod 777 {key} || kill {stranger} || touch /usr/bin/x || echo refused
unshare -Ur true || echo refused
"""


@pytest.fixture
def of_nobody():
    """A place on the disk that belongs to an ordinary user, with the guard, which root's own directories may hide."""
    if os.geteuid() != 0:
        pytest.skip("only root can become another user; the other tests here have run as an ordinary one")
    folder = Path(tempfile.mkdtemp(prefix="wakeful-test-"))
    shutil.copytree(Path(guard.__file__).parent, folder / "wakeful/sandbox")
    for name in ("workspace", "config"):
        (folder / name).mkdir()
    (folder / "config/key").write_text(SECRET)
    for path in [folder, *folder.rglob("*")]:
        path.chmod(0o755 if path.is_dir() else 0o644)
        os.chown(path, NOBODY, NOBODY)
    yield folder
    shutil.rmtree(folder)


def test_an_ordinary_user_is_confined_from_its_own_files_too(level, of_nobody):
    def as_nobody(command, **more):
        return subprocess.Popen(
            command, user=NOBODY, group=NOBODY, extra_groups=[], cwd=of_nobody / "workspace", **more
        )

    rules = make_rules(level, write=[of_nobody / "workspace"])
    key = of_nobody / "config/key"
    with as_nobody(["sleep", "600"]) as stranger:
        command = ORDINARY.format(key=key, stranger=stranger.pid)
        _, _, _, _, server, *rest = guarded("/bin/sh", "-c", command, rules=rules)
        program = ["/usr/bin/python3", "-I", "-S", str(of_nobody / "wakeful/sandbox/guard.py"), server, *rest]
        with as_nobody(
            program, env={"PATH": "/usr/bin:/bin"}, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        ) as running:
            said, problems = running.communicate(timeout=30)
        is_alive = stranger.poll() is None
        stranger.kill()
    assert said.decode().splitlines() == [str(NOBODY), "run", "refused", "refused"], problems.decode()
    assert is_alive
    assert key.stat().st_mode & 0o777 == 0o644


# ── The server's own processes ──────────────────────────────────────────────────────────────────────────────────────

PEEK = """
import sys
from wakeful.sandbox.kernel import drop_capabilities
drop_capabilities()  # else root sees everything
for pid in sys.argv[1:]:
    for name in ("environ", "mem", "maps"):
        try:
            open(f"/proc/{pid}/{name}", "rb").read(10)
            print("read", name, pid)
        except PermissionError:
            print("refused")
"""


def test_a_process_of_the_same_user_cannot_look_into_the_server_or_its_workers(tmp_path):
    environment = {
        "PATH": os.environ["PATH"],
        "WAKEFUL_DATA_DIR": str(tmp_path / "data"),
        "WAKEFUL_CONFIG_DIR": str(tmp_path / "config"),
        "WAKEFUL_MODEL_API_KEY": SECRET,
    }
    worker = subprocess.Popen(
        [sys.executable, "-I", "-m", "wakeful.agentdb.worker", "30"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={},
    )
    command = [Path(sys.executable).parent / "wakeful", "serve", "--port", "0"]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as server, worker:
        try:
            assert server.stdout is not None
            assert server.stdout.readline().startswith("Wakeful")  # it is up
            peeking = [sys.executable, "-c", PEEK, str(server.pid), str(worker.pid)]
            said = subprocess.run(peeking, capture_output=True, text=True, check=True).stdout.split("\n")
        finally:
            server.terminate()
            worker.kill()
    assert said == ["refused"] * 6 + [""]
