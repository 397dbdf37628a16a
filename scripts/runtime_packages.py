"""Print the packages that an installed server needs, among those that are installed beside this Python.

    runtime_packages.py            the server's own packages
    runtime_packages.py --others   all others: what builds and installs it

The image leaves out the others, and the SBOM of a release lists the server's own.
"""

import sys
from importlib.metadata import Distribution, PackageNotFoundError, distribution, distributions

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

NAME = "wakeful"


def find_runtime() -> dict[str, tuple[Distribution, set[str]]]:
    """Return the server's package and those it needs here, by name, each with the names of what it needs itself."""
    found: dict[str, tuple[Distribution, set[str]]] = {}
    seen: set[tuple[str, str]] = set()
    waiting = [Requirement(NAME)]
    while waiting:
        wanted = waiting.pop()
        name = canonicalize_name(wanted.name)
        for extra in {"", *wanted.extras}:
            if (name, extra) in seen:
                continue
            seen.add((name, extra))
            try:
                package = distribution(name)
            except PackageNotFoundError:  # for another system or another Python
                continue
            needed = [Requirement(line) for line in package.requires or []]
            needed = [each for each in needed if each.marker is None or each.marker.evaluate({"extra": extra})]
            names = {canonicalize_name(each.name) for each in needed}
            found[name] = (package, names | found[name][1] if name in found else names)
            waiting += needed
    return found


def main() -> None:
    """Print names, one per line."""
    runtime = set(find_runtime())
    installed = {canonicalize_name(each.metadata["Name"]) for each in distributions()}
    print("\n".join(sorted(installed - runtime if "--others" in sys.argv[1:] else runtime)))


if __name__ == "__main__":
    main()
