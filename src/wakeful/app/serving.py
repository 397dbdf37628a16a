"""A node and its HTTP application."""

import gc
from importlib.metadata import version

from starlette.types import ASGIApp

from wakeful.app.building import Wakeful
from wakeful.server.app import create_app
from wakeful.server.gate import Gate
from wakeful.server.login_attempts import Tries
from wakeful.service.people.first_start import settle_owner
from wakeful.tools.confinement.probe import find_confinement


def build_http(node: Wakeful) -> ASGIApp:
    """Make the HTTP application of a node, behind the gate that checks Host, Origin and token."""
    tries = Tries(node.clock)
    app = create_app(
        version("wakeful"),
        node.services,
        tries,
        lambda: node.engine.readiness().problems,
        heartbeat_seconds=node.settings.socket_heartbeat_seconds,
        model=node.settings.model,
        is_shared=node.store.is_shared,
        find_held=node.engine.held,
        shell=find_confinement().of(is_unconfined=node.settings.shell_unconfined),
    )
    return Gate(app, node.services.accounts, tries, node.settings)


async def welcome(node: Wakeful) -> str:
    """Make sure of an owner with an agent, and return the path of a link that logs the owner's browser in."""
    owner = await settle_owner(node.store, node.clock, node.settings)
    await node.agents.make_first(owner.identity.user)
    return f"/login?code={await node.services.accounts.make_login_code(owner.identity)}"


def settle_memory() -> None:
    """Keep the garbage collector from going through what is loaded by now: that takes 20 ms, in which wakes wait."""
    gc.collect()
    gc.freeze()
