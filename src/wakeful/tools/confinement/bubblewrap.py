"""bubblewrap: namespaces in which a program sees only the files and processes that it may."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from wakeful.tools.confinement.rules import ConfinementRules


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
