"""The SBOM of a release (CycloneDX 1.6): the packages that the server runs with, and those in its built page.

Python packages, as installed here and locked with hashes in requirements.lock; the page's from web/package-lock.json.
"""

import base64
import json
import re
from pathlib import Path
from typing import Any

from cyclonedx.model import HashAlgorithm, HashType
from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.output.json import JsonV1Dot6
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from packageurl import PackageURL

from runtime_packages import NAME, find_runtime

BUILD_TOOLS = {"vite", "@vitejs/plugin-react"}  # dependencies of web/package.json that are not in the page


def write_sbom(root: Path, path: Path) -> Path:
    """Write the SBOM of the installed version."""
    bom = Bom()
    python = {
        name: (_python_component(name, package.version, root), needed)
        for name, (package, needed) in find_runtime().items()
    }
    server, _ = python[NAME]
    bom.metadata.component = server
    page = {place: _page_component(place, entry) for place, entry in _page_packages(root).items()}
    for component in [*(each for each, _ in python.values() if each is not server), *page.values()]:
        bom.components.add(component)
    for component, needed in python.values():
        known = [python[name][0] for name in sorted(needed) if name in python]
        bom.register_dependency(component, [*known, *(page.values() if component is server else ())])
    text = JsonV1Dot6(bom).output_as_string(indent=1)
    problem = JsonStrictValidator(SchemaVersion.V1_6).validate_str(text)
    assert problem is None, problem
    path.write_text(text + "\n", encoding="utf-8")
    return path


def _python_component(name: str, version: str, root: Path) -> Component:
    kind = ComponentType.APPLICATION if name == NAME else ComponentType.LIBRARY
    address = PackageURL("pypi", None, name, version)
    known = _locked_hashes(root).get(f"{name}=={version}", [])  # of all its files, for every system
    hashes = [HashType(alg=HashAlgorithm.SHA_256, content=each) for each in known]
    return Component(type=kind, name=name, version=version, purl=address, bom_ref=str(address), hashes=hashes)


def _page_component(place: str, entry: dict[str, Any]) -> Component:
    group, _, name = place.rpartition("node_modules/")[2].rpartition("/")
    address = PackageURL("npm", group or None, name, entry["version"])
    digest = base64.b64decode(entry["integrity"].removeprefix("sha512-")).hex()
    return Component(
        type=ComponentType.LIBRARY,
        group=group or None,
        name=name,
        version=entry["version"],
        purl=address,
        bom_ref=str(address),
        hashes=[HashType(alg=HashAlgorithm.SHA_512, content=digest)],
    )


def _page_packages(root: Path) -> dict[str, dict[str, Any]]:
    """Return the npm packages that the built page may contain, by their place in node_modules."""
    locked: dict[str, Any] = json.loads((root / "web/package-lock.json").read_text(encoding="utf-8"))["packages"]
    found: dict[str, dict[str, Any]] = {}
    waiting = [("", name) for name in locked[""]["dependencies"] if name not in BUILD_TOOLS]
    while waiting:
        place = _resolve(*waiting.pop(), locked)
        if place is not None and place not in found:
            found[place] = locked[place]
            waiting += [(place, name) for name in locked[place].get("dependencies", {})]
    return found


def _resolve(parent: str, name: str, locked: dict[str, Any]) -> str | None:
    """Return the place of a package that another one imports: in its own node_modules, or in those around it."""
    while True:
        place = f"{parent}/node_modules/{name}".lstrip("/")
        if place in locked:
            return place
        if not parent:
            return None
        parent = parent.rpartition("/node_modules/")[0] if "/node_modules/" in parent else ""


def _locked_hashes(root: Path) -> dict[str, list[str]]:
    """Return the hashes of every locked package, by `name==version`."""
    text = (root / "requirements.lock").read_text(encoding="utf-8")
    blocks = re.findall(r"^([\w.-]+==[^\s;]+).*\n((?:[ \t].*\n)*)", text, re.MULTILINE)
    return {name: re.findall(r"--hash=sha256:(\w+)", hashes) for name, hashes in blocks}
