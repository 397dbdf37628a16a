"""What the guard asks of the Linux kernel: dropping privileges, Landlock, seccomp; and the call of bubblewrap.

Landlock limits opening files. The seccomp filter denies the rest: sockets, io_uring (which can open sockets without a
system call), limits and priorities of other processes, shared memory, namespaces and mounts.
"""

import ctypes
import errno
import os
import stat
import struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from wakeful.sandbox.rules import ConfinementRules

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


# Landlock: the files that a process and its children can open, and the processes they can signal.


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


def landlock_abi() -> int:
    """Return the version of Landlock in this kernel; 0: none."""
    try:
        return system_call(_CREATE_RULESET, None, 0, _CREATE_RULESET_VERSION)
    except OSError:
        return 0


def restrict_files(read: "list[str]", write: "list[str]", *, is_network_allowed: bool) -> None:
    """Confine this process for good. Raises OSError if a path cannot be opened or a rule is refused."""
    if landlock_abi() < NEEDED_ABI:
        raise OSError(
            errno.ENOSYS, f"the kernel has Landlock ABI {landlock_abi()}, and {NEEDED_ABI} is needed (Linux 6.12)"
        )
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


# seccomp: a BPF filter that denies system calls to a confined program.


# Numbers on x86_64 and on aarch64; None: there is no such call. From 424 on they are the same.
NUMBERS: "dict[str, tuple[int | None, int | None]]" = {
    "add_key": (248, 217), "bpf": (321, 280), "chmod": (90, None), "chown": (92, None), "chroot": (161, 51),
    "clone": (56, 220), "clone3": (435, 435), "fanotify_init": (300, 262), "fchmod": (91, 52), "fchmodat": (268, 53),
    "fchmodat2": (452, 452), "fchown": (93, 55), "fchownat": (260, 54), "file_setattr": (469, 469),
    "finit_module": (313, 273), "fremovexattr": (199, 16), "fsconfig": (431, 431), "fsetxattr": (190, 7),
    "fsmount": (432, 432), "fsopen": (430, 430), "fspick": (433, 433), "futimesat": (261, None),
    "init_module": (175, 105), "inotify_add_watch": (254, 27), "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427), "io_uring_setup": (425, 425), "ioprio_set": (251, 30), "kcmp": (312, 272),
    "kexec_file_load": (320, 294), "kexec_load": (246, 104), "keyctl": (250, 219), "lchown": (94, None),
    "lremovexattr": (198, 15), "lsetxattr": (189, 6), "mount": (165, 40), "mount_setattr": (442, 442),
    "move_mount": (429, 429), "mq_open": (240, 180), "mq_unlink": (241, 181), "msgctl": (71, 187),
    "msgget": (68, 186), "msgrcv": (70, 188), "msgsnd": (69, 189), "open_by_handle_at": (304, 265),
    "open_tree": (428, 428), "open_tree_attr": (467, 467), "perf_event_open": (298, 241), "pidfd_getfd": (438, 438),
    "pivot_root": (155, 41), "prlimit64": (302, 261), "process_madvise": (440, 440), "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271), "ptrace": (101, 117), "reboot": (169, 142), "removexattr": (197, 14),
    "removexattrat": (466, 466), "request_key": (249, 218), "sched_setattr": (314, 274), "sched_setparam": (142, 118),
    "sched_setscheduler": (144, 119), "seccomp": (317, 277), "semctl": (66, 191), "semget": (64, 190),
    "semop": (65, 193), "semtimedop": (220, 192), "setns": (308, 268), "setpriority": (141, 140),
    "setxattr": (188, 5), "setxattrat": (463, 463), "shmat": (30, 196), "shmctl": (31, 195), "shmget": (29, 194),
    "socket": (41, 198), "socketpair": (53, 199), "umount2": (166, 39), "unshare": (272, 97),
    "userfaultfd": (323, 282), "utime": (132, None), "utimensat": (280, 88), "utimes": (235, None),
}  # fmt: skip
_LAST_KNOWN = 469  # newer calls fail as on an older kernel


def _words(text: str) -> "tuple[str, ...]":
    return tuple(text.split())


DENIED = _words(
    "ptrace process_vm_readv process_vm_writev process_madvise kcmp pidfd_getfd "  # other processes
    "keyctl add_key request_key "  # keys that the kernel holds for the user
    "bpf userfaultfd perf_event_open io_uring_setup io_uring_enter io_uring_register "
    "mount umount2 pivot_root chroot move_mount open_tree open_tree_attr fsopen fsconfig fsmount fspick mount_setattr "
    "setns unshare open_by_handle_at fanotify_init init_module finit_module kexec_load kexec_file_load reboot "
    "shmget shmat shmctl semget semop semtimedop semctl msgget msgsnd msgrcv msgctl mq_open mq_unlink"
)
_NO_SUCH_CALL = ("clone3",)  # its flags are in memory, which a filter cannot read; libraries then use clone
_ZERO_ONLY = {  # calls with a process id, and the position of that argument; 0 is the caller
    "prlimit64": 0, "sched_setscheduler": 0, "sched_setparam": 0, "sched_setattr": 0, "setpriority": 1, "ioprio_set": 1,
}  # fmt: skip

# Landlock does not limit these, so they would work on any file of the machine that is visible.
_ATTRIBUTES = _words(
    "setxattr lsetxattr fsetxattr removexattr lremovexattr fremovexattr setxattrat removexattrat file_setattr"
)
SUPERVISED = _words("chmod fchmod fchmodat fchmodat2 chown lchown fchown fchownat utime utimes futimesat utimensat")

_AUDIT_ARCHITECTURE = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
_NEW_NAMESPACES = 0x7E020000
_AF_UNIX, _AF_INET, _AF_INET6, _AF_NETLINK = 1, 2, 10, 16
_SOCK_STREAM, _SOCK_SEQPACKET = 1, 5

_LOAD, _JUMP_EQUAL, _JUMP_GREATER, _JUMP_BITS, _AND, _RETURN = 0x20, 0x15, 0x25, 0x45, 0x54, 0x06
_ALLOW, _KILL, _ERRNO, _NOTIFY = 0x7FFF0000, 0x80000000, 0x00050000, 0x7FC00000
_NUMBER_AT, _ARCHITECTURE_AT, _ARGUMENTS_AT = 0, 4, 16

_SET_MODE_FILTER = 1
_NEW_LISTENER, _WAIT_KILLABLE = 1 << 3, 1 << 5


def machine() -> str:
    """Return the architecture. Raises OSError if this module has no numbers for it."""
    name = os.uname().machine
    if name not in _AUDIT_ARCHITECTURE:
        raise OSError(errno.ENOSYS, f"the system calls of {name} are not known, only those of x86_64 and aarch64")
    return name


def number_of(call: str) -> "int | None":
    """Return a system call's number on this machine."""
    return NUMBERS[call][0 if machine() == "x86_64" else 1]


def make_filter(*, is_network_allowed: bool, has_own_files: bool) -> bytes:
    """Return the filter's BPF program.

    `has_own_files`: bubblewrap shows the program only its own files, so it may change their attributes. Unless network
    is allowed, it also has a network namespace of its own, so it may use Unix sockets.
    """
    program = [
        _load(_ARCHITECTURE_AT),
        _jump(_JUMP_EQUAL, _AUDIT_ARCHITECTURE[machine()], 1, 0),
        _return(_KILL),
        _load(_NUMBER_AT),
        # Also the calls of the x32 ABI, which have numbers of their own.
        _jump(_JUMP_GREATER, _LAST_KNOWN, 0, 1),
        _return(_ERRNO | errno.ENOSYS),
    ]
    for call in DENIED:
        program += _on(call, [_return(_ERRNO | errno.EPERM)])
    for call in _NO_SUCH_CALL:
        program += _on(call, [_return(_ERRNO | errno.ENOSYS)])
    for call, position in _ZERO_ONLY.items():
        program += _on(call, [_argument(position), *_allow_if_equal(0), _return(_ERRNO | errno.EPERM)])
    program += _on(
        "clone",
        [_argument(0), _jump(_JUMP_BITS, _NEW_NAMESPACES, 0, 1), _return(_ERRNO | errno.EPERM), _return(_ALLOW)],
    )
    program += _sockets(
        is_network_allowed=is_network_allowed, are_unix_allowed=has_own_files and not is_network_allowed
    )
    if not has_own_files:
        for call in (*_ATTRIBUTES, "inotify_add_watch"):
            refusal = errno.EPERM if call == "inotify_add_watch" else errno.EOPNOTSUPP
            program += _on(call, [_return(_ERRNO | refusal)])
        for call in SUPERVISED:
            program += _on(call, [_return(_NOTIFY)])
    program.append(_return(_ALLOW))
    return b"".join(program)


def install_filter(program: bytes, *, has_listener: bool) -> int:
    """Install a filter for this process, for good; return the descriptor on which supervised calls arrive."""
    import ctypes

    code = ctypes.create_string_buffer(program, len(program))
    header = struct.pack("HxxxxxxP", len(program) // 8, ctypes.addressof(code))
    flags = _NEW_LISTENER | _WAIT_KILLABLE if has_listener else 0
    number = number_of("seccomp")
    assert number is not None
    return system_call(number, _SET_MODE_FILTER, flags, header)


def _sockets(*, is_network_allowed: bool, are_unix_allowed: bool) -> "list[bytes]":
    families = [_AF_INET, _AF_INET6, _AF_NETLINK] if is_network_allowed else []
    families += [_AF_UNIX] if are_unix_allowed else []
    block = [_argument(0)]
    for family in families:
        block += _allow_if_equal(family)
    program = _on("socket", [*block, _return(_ERRNO | errno.EACCES)])
    if not are_unix_allowed:
        # A datagram socket of a pair could be connected again, to any socket with a path.
        kinds = [
            _argument(1),
            _instruction(_AND, 0xF),
            *_allow_if_equal(_SOCK_STREAM),
            *_allow_if_equal(_SOCK_SEQPACKET),
        ]
        program += _on("socketpair", [*kinds, _return(_ERRNO | errno.EACCES)])
    return program


def _on(call: str, block: "list[bytes]") -> "list[bytes]":
    """Run a block for one call. The block must return, because it may have loaded another value."""
    number = number_of(call)
    return [] if number is None else [_jump(_JUMP_EQUAL, number, 0, len(block)), *block]


def _allow_if_equal(value: int) -> "list[bytes]":
    return [_jump(_JUMP_EQUAL, value, 0, 1), _return(_ALLOW)]


def _argument(position: int) -> bytes:
    """Load the low half of an argument; those that are checked have 32 bits, and both machines are little-endian."""
    return _load(_ARGUMENTS_AT + 8 * position)


def _load(offset: int) -> bytes:
    return _instruction(_LOAD, offset)


def _return(action: int) -> bytes:
    return _instruction(_RETURN, action)


def _jump(test: int, value: int, if_true: int, if_false: int) -> bytes:
    return struct.pack("=HBBI", test, if_true, if_false, value)


def _instruction(code: int, value: int) -> bytes:
    return struct.pack("=HBBI", code, 0, 0, value)


# bubblewrap: namespaces in which a program sees only the files and processes that it may.


def wrapped(rules: "ConfinementRules", temp: str, filter_descriptor: int, directory: str) -> "list[str]":
    """Return the arguments of bubblewrap; the program and its arguments follow them."""
    words = [
        rules["bwrap"], "--die-with-parent", "--new-session",
        "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try",
        "--cap-drop", "ALL", "--seccomp", str(filter_descriptor),
    ]  # fmt: skip
    if not rules["network"]:
        words.append("--unshare-net")
    words += ["--proc", "/proc", "--dev", "/dev", "--bind", temp, "/tmp", "--setenv", "TMPDIR", "/tmp"]
    shown: list[str] = []
    writable: list[str] = []
    binds = [("--ro-bind", path) for path in rules["read"]] + [("--bind", path) for path in rules["write"]]
    for how, path in sorted(binds, key=lambda bind: len(bind[1])):  # a directory before what is inside it
        known = writable if how == "--bind" else shown
        if path.startswith("/proc/") or any(path == each or path.startswith(each + "/") for each in known):
            continue
        words += [how, path, path]
        shown.append(path)
        if how == "--bind":
            writable.append(path)
    return [*words, "--remount-ro", "/", "--chdir", directory, "--"]
