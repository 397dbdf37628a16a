"""A push service and the browsers behind it: HTTPS, and its own reading of RFC 8291 and RFC 8292.

Nothing here uses Wakeful's code or the HKDF that it uses, so an error in both would have to be made twice.
"""

import asyncio
import base64
import hashlib
import hmac
import json
import ssl
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import jwt
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from network.tls_proxy import write_certificate

_POINT = serialization.Encoding.X962, serialization.PublicFormat.UncompressedPoint


def from_base64url(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def to_base64url(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


class Browser:
    """The keys of one subscription."""

    def __init__(self, secret: int | None = None, auth: bytes = b"sixteen bytes ok") -> None:
        curve = ec.SECP256R1()
        self._key = ec.generate_private_key(curve) if secret is None else ec.derive_private_key(secret, curve)
        self._auth = auth

    @property
    def keys(self) -> dict[str, str]:
        """The keys as the browser gives them away."""
        return {"p256dh": to_base64url(self._key.public_key().public_bytes(*_POINT)), "auth": to_base64url(self._auth)}

    def read(self, body: bytes) -> bytes:
        """Decrypt a message, byte by byte as RFC 8291 and RFC 8188 write it."""
        salt, record_size, length = body[:16], int.from_bytes(body[16:20], "big"), body[20]
        point, sealed = body[21 : 21 + length], body[21 + length :]
        assert length == 65
        assert len(sealed) <= record_size <= 4096
        theirs = ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), point)
        shared = self._key.exchange(ec.ECDH(), theirs)
        ours = self._key.public_key().public_bytes(*_POINT)
        ikm = _hmac(_hmac(self._auth, shared), b"WebPush: info\x00" + ours + point + b"\x01")
        prk = _hmac(salt, ikm)
        key = _hmac(prk, b"Content-Encoding: aes128gcm\x00\x01")[:16]
        nonce = _hmac(prk, b"Content-Encoding: nonce\x00\x01")[:12]
        text = AESGCM(key).decrypt(nonce, sealed, None).rstrip(b"\x00")
        assert text[-1:] == b"\x02"  # the delimiter of the last record
        return text[:-1]


def _hmac(key: bytes, data: bytes) -> bytes:
    return hmac.new(key, data, hashlib.sha256).digest()


@dataclass(frozen=True)
class Pushed:
    """A request that the push service got."""

    path: str
    headers: dict[str, str]  # names in lower case
    body: bytes

    def claims(self, audience: str) -> dict[str, Any]:
        """Check the signature (RFC 8292), and return what was signed."""
        kind, _, parameters = self.headers["authorization"].partition(" ")
        assert kind == "vapid"
        given = dict(each.strip().split("=", 1) for each in parameters.split(","))
        key = ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), from_base64url(given["k"]))
        # The tests have a clock of their own, which the signature's end is compared with.
        return jwt.decode(given["t"], key, algorithms=["ES256"], audience=audience, options={"verify_exp": False})

    @property
    def signed_with(self) -> str:
        """The public key that the sender names."""
        return self.headers["authorization"].partition("k=")[2]


@dataclass
class PushService:
    """Answers with the scripted statuses, then with 201, and keeps what it got."""

    folder: Path
    script: list[tuple[int, dict[str, str]]] = field(default_factory=list)
    is_silent: bool = False
    got: list[Pushed] = field(default_factory=list)
    has_more: asyncio.Event = field(default_factory=asyncio.Event)

    async def __aenter__(self) -> Self:
        self.certificate = write_certificate("localhost", self.folder / "push.pem")
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.certificate)
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0, ssl=context)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()

    @property
    def origin(self) -> str:
        return f"https://localhost:{self.port}"

    def endpoint(self, name: str = "one") -> str:
        return f"{self.origin}/push/secret-{name}"

    async def next(self, seconds: float = 30.0) -> Pushed:
        """Return the next message that came, or comes."""
        async with asyncio.timeout(seconds):
            while not self.got:
                self.has_more.clear()
                await self.has_more.wait()
        return self.got.pop(0)

    async def read(self, browser: Browser) -> dict[str, Any]:
        """Return the next message as a browser reads it."""
        return json.loads(browser.read((await self.next()).body))

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            line, *rest = (await reader.readuntil(b"\r\n\r\n")).decode().strip().split("\r\n")
            headers = {name.lower(): value.strip() for name, _, value in (each.partition(":") for each in rest)}
            body = await reader.readexactly(int(headers["content-length"]))
            self.got.append(Pushed(line.split()[1], headers, body))
            self.has_more.set()
            if self.is_silent:
                await reader.read()  # until the client gives up
                return
            status, more = self.script.pop(0) if self.script else (201, {})
            extra = "".join(f"{name}: {value}\r\n" for name, value in more.items())
            writer.write(f"HTTP/1.1 {status} x\r\n{extra}content-length: 0\r\nconnection: close\r\n\r\n".encode())
            await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass  # the sender was killed
        finally:
            writer.close()
