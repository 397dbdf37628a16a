"""Refuse hosts on private networks when an address is saved. The sending process checks each connection again."""

import asyncio
import socket
from collections.abc import Collection
from ipaddress import ip_address

from wakeful.domain.addresses import is_public
from wakeful.domain.inbox.channels import PrivateAddress


async def check_public(host: str, private_hosts: Collection[str], field: str = "url") -> None:
    """Refuse a host that resolves to a private address, unless the owner of the server allows it."""
    if host in private_hosts:
        return
    try:
        found = await asyncio.get_running_loop().getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return  # name resolution may be down just now; sending will show it
    for *_, address in found:
        if not is_public(ip_address(str(address[0]).partition("%")[0])):
            raise PrivateAddress(host, field)
