"""Builds the HTTP application of a node, and prepares its first login."""

import gc
from importlib.metadata import version

from starlette.types import ASGIApp

from wakeful.app.building import Wakeful
from wakeful.app.logs.writer import count_dropped
from wakeful.server.app import create_app
from wakeful.server.gate import Gate
from wakeful.server.login.attempts import Tries
from wakeful.service.people.first_start import settle_owner
from wakeful.tools.confinement.probe import find_confinement


def build_http(node: Wakeful) -> ASGIApp:
    """Build the HTTP application of a node, behind the gate that checks Host, Origin and token."""
    tries = Tries(node.clock)
    text = "Log lines that were dropped, because the target of the log was blocked."
    node.services.metrics.watch("wakeful_log_lines_dropped", text, count_dropped)
    app = create_app(
        version("wakeful"),
        node.services,
        tries,
        lambda: node.engine.readiness().problems,
        heartbeat_seconds=node.settings.socket_heartbeat_seconds,
        is_shared=node.store.is_shared,
        find_held=node.engine.held,
        shell=find_confinement().of(is_unconfined=node.settings.shell_unconfined),
        base_path=node.settings.base_path,
        public_address=node.settings.public_address,
    )
    return Gate(app, node.services.accounts, tries, node.settings)


async def welcome(node: Wakeful) -> str:
    """Make sure that there is an owner with an agent, and return the path of a login link for the owner's browser."""
    await node.services.directories.arrive()  # before other nodes decide which owner tokens are in use
    await node.services.nodes.arrive()
    owner = await settle_owner(node.store, node.clock, node.settings, node.services.nodes)
    await node.agents.make_first(owner.user)
    return f"/login?code={await node.services.accounts.make_login_code(owner)}"


def settle_memory() -> None:
    """Exclude the objects loaded so far from garbage collection, which would delay wakes by 20 ms each time."""
    gc.collect()
    gc.freeze()
