"""Connections to a server over HTTP or TLS, and what to do when there is none."""

from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import TYPE_CHECKING

from wakeful.cli.output import fail
from wakeful.cli.target import NotRunning, Target, find_running_server, reachable

if TYPE_CHECKING:
    import ssl

TIMEOUT = 30  # seconds


def open_connection(target: Target, timeout: float = TIMEOUT) -> HTTPConnection:
    """Return a connection to a server, which is made with the first request."""
    host, port = str(target.parts.hostname), target.parts.port
    context = tls_context(target)
    if context is None:
        return HTTPConnection(host, port, timeout=timeout)
    return HTTPSConnection(host, port, timeout=timeout, context=context)


def tls_context(target: Target) -> "ssl.SSLContext | None":
    """Return the TLS context for a server, with the authority that the user trusts; None: it has no TLS."""
    if target.parts.scheme != "https":
        return None
    import ssl

    own = target.certificate if target.ca is None else None
    try:
        context = ssl.create_default_context(cafile=own or target.ca)
    except (OSError, ssl.SSLError) as error:
        fail(f"The file of the certificate authority {str(own or target.ca)!r} cannot be used: {error}.")
    if own is not None:  # the very certificate is checked, which is for the public name and not for 127.0.0.1
        context.check_hostname = False
        context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    return context


def explain_failure(error: OSError | HTTPException, target: Target) -> str:
    """Return why a server cannot be reached, and what to do."""
    return f"No server answers at {target.url}: {_reason(error, target)} {_advice(target)}"


def explain_token(target: Target) -> str:
    """Return where a token that was refused is from, and whether it was sent to the wrong server."""
    return " ".join(filter(None, (f"The token is from {target.token_from}.", _find_other_address(target))))


def _reason(error: OSError | HTTPException, target: Target) -> str:
    import socket
    import ssl

    if isinstance(error, ssl.SSLCertVerificationError):
        return (
            f"its certificate is not trusted ({error.verify_message}). If it is from an authority of your own, "
            "give that authority's certificate with --ca FILE."
        )
    if isinstance(error, ssl.SSLError):
        return f"it does not speak TLS ({error.reason}). If it has none, its address begins with http://."
    if isinstance(error, socket.gaierror):
        return f"the host name {target.parts.hostname!r} is not known."
    if isinstance(error, NotRunning):
        return str(error)
    if isinstance(error, ConnectionRefusedError):
        return "nothing listens there."
    if isinstance(error, TimeoutError):
        return f"no answer within {TIMEOUT} seconds."
    if isinstance(error, HTTPException | ConnectionResetError):
        other = "https" if target.parts.scheme == "http" else "http"
        return f"what listens there does not speak HTTP. If it is Wakeful, its address begins with {other}://."
    return f"{error.strerror or type(error).__name__}."


def _advice(target: Target) -> str:
    if not target.is_local:
        return f"The address is from {target.named_by}. `wakeful --context local …` uses this machine's server."
    return _find_other_address(target) or "Start it with `wakeful serve`, or name another server with --url."


def _find_other_address(target: Target) -> str | None:
    running = find_running_server() if target.is_local else None
    if running is None or reachable(running.address) == target.url:
        return None
    return (
        f"A server with this data directory runs at {running.address} (pid {running.pid}). WAKEFUL_PORT says "
        "otherwise: unset it, and commands find the server."
    )
