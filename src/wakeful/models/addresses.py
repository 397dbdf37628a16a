"""Addresses of models' endpoints: which are accepted, and where a key may be sent."""

import ipaddress
from urllib.parse import SplitResult, parse_qsl, urlsplit

from wakeful.core.addresses import Address, hide_login
from wakeful.core.errors import Forbidden, Invalid
from wakeful.models.providers import Provider

MAX_ADDRESS = 500  # characters
_REFUSED = tuple(
    ipaddress.ip_network(network)
    for network in (
        "0.0.0.0/8",
        "100.100.100.200/32",  # one cloud's metadata server
        "168.63.129.16/32",  # an internal service of one cloud
        "169.254.0.0/16",  # link-local; the other clouds' metadata servers
        "224.0.0.0/4",  # multicast
        "240.0.0.0/4",  # reserved, and broadcast
        "::/128",
        "fd00:ec2::254/128",  # one cloud's metadata server
        "fe80::/10",  # link-local
        "ff00::/8",  # multicast
    )
)
_PRIVATE = tuple(
    ipaddress.ip_network(network)
    for network in ("10.0.0.0/8", "127.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "::1/128", "fc00::/7")
)
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
_SIX_TO_FOUR = ipaddress.IPv6Network("2002::/16")


class BadModelAddress(Invalid):
    code = "bad_model_address"

    def __init__(self, address: str, problem: str) -> None:
        super().__init__(
            f"The address {hide_login(address)[:MAX_ADDRESS]!r} cannot be used: {problem}", field="address"
        )


class ModelAddressRefused(Forbidden):
    """A host that is never asked for an answer, such as a cloud's metadata server."""

    code = "model_address_refused"

    def __init__(self, host: str, address: str) -> None:
        where = f"{host!r}" if host == address else f"{host!r} ({address})"
        super().__init__(
            f"The address of the host {where} is link-local or reserved, and models are not used from there. Use the "
            "address of the model's server.",
            field="address",
        )


class KeyNeedsHttps(Forbidden):
    code = "key_needs_https"

    def __init__(self, host: str) -> None:
        super().__init__(
            f"A key is sent over plain http only to this machine or a private network, and {host!r} is neither. Use an "
            "https:// address, or no key.",
            field="address",
        )


def check_address(provider: Provider, address: str | None) -> str:
    """Return the address of an endpoint in the form that is stored; without one, the provider's own."""
    address = (address or "").strip() or provider.address
    if address is None:
        example = provider.address_example or "https://HOST/v1"
        raise BadModelAddress("", f"{provider.label} has no address of its own; give one such as {example}.")
    try:
        parts = urlsplit(address)
        _ = parts.port  # raises if it is not a number
    except ValueError:  # whose text may have a part of a password in it
        raise BadModelAddress(address, "it is not a web address.") from None
    is_plain = len(address) <= MAX_ADDRESS and all("!" <= character <= "~" for character in address)
    if parts.scheme not in ("http", "https") or not parts.hostname or not is_plain:
        raise BadModelAddress(address, "it must begin with http:// or https://, such as http://127.0.0.1:11434.")
    if parts.username is not None or parts.password is not None or parts.fragment:
        raise BadModelAddress(address, "it must have no user name, password or #fragment. Give the key as `key`.")
    _check_query(provider, address, parts)
    check_host(parts.hostname)
    return _tidy(provider, parts)


def check_host(host: str) -> None:
    """Refuse a literal address that is never used. Names are resolved and checked when they are connected to."""
    try:
        literal = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return
    check_ip(host, literal)


def check_ip(host: str, address: Address, *, has_plain_key: bool = False) -> None:
    """Refuse to connect to an address; with `has_plain_key`, a key would be sent there without encryption."""
    for each in _forms(address):
        if any(each in network for network in _REFUSED if network.version == each.version):
            raise ModelAddressRefused(host, str(address))
    if has_plain_key and not is_private(address):
        raise KeyNeedsHttps(host)


def is_private(address: Address) -> bool:
    """Return whether an address is on this machine or in a private network."""
    inner = _forms(address)[-1]
    return any(inner in network for network in _PRIVATE if network.version == inner.version)


def is_plain_http(address: str) -> bool:
    return urlsplit(address).scheme == "http"


def _forms(address: Address) -> list[Address]:
    """Return an address, and the IPv4 address inside it if there is one."""
    if not isinstance(address, ipaddress.IPv6Address):
        return [address]
    if address.ipv4_mapped is not None:
        return [address, address.ipv4_mapped]
    if address in _NAT64:
        return [address, ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)]
    if address in _SIX_TO_FOUR and address.sixtofour is not None:
        return [address, address.sixtofour]
    return [address]


def _check_query(provider: Provider, address: str, parts: SplitResult) -> None:
    names = [name for name, _ in parse_qsl(parts.query, keep_blank_values=True)]
    if parts.query and not (provider.id == "azure" and names == ["api-version"]):
        raise BadModelAddress(address, "it must have no ?query. Give the key as `key`.")


def _tidy(provider: Provider, parts: SplitResult) -> str:
    path = parts.path.rstrip("/")
    if provider.wire == "ollama":  # its own API is beside the compatible one, which people know the address of
        path = path.removesuffix("/v1").removesuffix("/api")
    if provider.id == "azure" and not path and not parts.query:
        path = "/openai/v1"
    if provider.wire in ("anthropic", "google"):  # their clients add it
        path = path.removesuffix("/v1").removesuffix("/v1beta")
    return parts._replace(scheme=parts.scheme.lower(), path=path).geturl()
