"""The certificate of a server that ends TLS itself."""

import asyncio
import logging
import ssl
from pathlib import Path
from typing import Self

from wakeful.config.settings import ConfigError, Settings

log = logging.getLogger(__name__)

_LOOK_EVERY = 60.0  # seconds


class Certificate:
    """A certificate and its key, read again when the files change, as they do when the certificate is renewed."""

    def __init__(self, certificate: Path, key: Path) -> None:
        self._certificate = certificate
        self._key = key
        self.context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        self.context.set_alpn_protocols(["http/1.1"])
        self._load()

    @classmethod
    def of(cls, settings: Settings) -> Self | None:
        """Return the certificate of the settings; None: the server has no TLS of its own."""
        if settings.tls_certificate is None or settings.tls_key is None:
            return None
        try:
            return cls(settings.tls_certificate, settings.tls_key)
        except (OSError, ssl.SSLError) as error:
            problem = (
                f"The certificate {str(settings.tls_certificate)!r} with the key {str(settings.tls_key)!r} cannot be"
                f" used: {_explain_tls(error)}. Both must be PEM files that this user can read, the key without a"
                " passphrase."
            )
            raise ConfigError([problem]) from error

    async def watch(self) -> None:
        """Read the files again when they change, until cancelled. Connections that are open keep the old ones."""
        while True:
            await asyncio.sleep(_LOOK_EVERY)
            self.look()

    def look(self) -> None:
        """Read the files again if they have changed. With files that do not fit, the present certificate stays."""
        try:
            if self._written_at() == self._loaded_at:
                return
            self._load()
        except (OSError, ssl.SSLError) as error:
            log.warning("the new certificate cannot be used; the old one stays", extra={"problem": _explain_tls(error)})
        else:
            log.info("the certificate was read again")

    def _load(self) -> None:
        self._loaded_at = self._written_at()
        self.context.load_cert_chain(self._certificate, self._key, password="")

    def _written_at(self) -> tuple[int, int]:
        return self._certificate.stat().st_mtime_ns, self._key.stat().st_mtime_ns


def _explain_tls(error: OSError) -> str:
    reason = error.reason if isinstance(error, ssl.SSLError) else error.strerror
    return str(reason or error).replace("_", " ").lower()
