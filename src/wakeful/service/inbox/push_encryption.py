"""Encrypt push messages for a browser (RFC 8291, RFC 8188) and sign the request to its push service (RFC 8292)."""

import base64
import os
from datetime import datetime, timedelta
from urllib.parse import urlsplit

import orjson
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from wakeful.domain.inbox.push import BadSubscription, decode

_RECORD = 4_096  # bytes; every push service takes a message of this size
_LAST = b"\x02"  # the delimiter after the last record
_OVERHEAD = 16 + 4 + 1 + 65 + len(_LAST) + 16  # salt, record size, key length, key, delimiter, tag
MAX_MESSAGE = _RECORD - _OVERHEAD
_VALID = timedelta(hours=12)  # of a signature; push services refuse more than 24 hours
_CURVE = ec.SECP256R1()


def to_base64url(data: bytes) -> str:
    """Write bytes as base64url without padding."""
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def check_point(p256dh: str) -> None:
    """Refuse a public key that is not a point on the curve."""
    _point(p256dh)


def encrypt(message: bytes, p256dh: str, auth: str) -> bytes:
    """Encrypt a message so that only the browser of a subscription can read it."""
    if len(message) > MAX_MESSAGE:
        raise ValueError(f"a push message has {MAX_MESSAGE} bytes at most, not {len(message)}")
    theirs, ours, salt = _point(p256dh), ec.generate_private_key(_CURVE), os.urandom(16)
    our_point = _as_bytes(ours.public_key())
    context = b"WebPush: info\x00" + _as_bytes(theirs) + our_point
    secret = _derive(ours.exchange(ec.ECDH(), theirs), decode(auth, "auth"), context, 32)
    key = _derive(secret, salt, b"Content-Encoding: aes128gcm\x00", 16)
    nonce = _derive(secret, salt, b"Content-Encoding: nonce\x00", 12)
    head = salt + _RECORD.to_bytes(4, "big") + bytes([len(our_point)]) + our_point
    return head + AESGCM(key).encrypt(nonce, message + _LAST, None)


def authorize(
    key: ec.EllipticCurvePrivateKey, public_key: str, endpoint: str, contact: str | None, now: datetime
) -> str:
    """Return the Authorization header that proves which server sends a message."""
    parts = urlsplit(endpoint)
    claims: dict[str, str | int] = {
        "aud": f"{parts.scheme}://{parts.netloc}",
        "exp": int((now + _VALID).timestamp()),
    }
    if contact is not None:
        claims["sub"] = contact
    header = {"typ": "JWT", "alg": "ES256"}
    signed = ".".join(to_base64url(orjson.dumps(part)) for part in (header, claims))
    first, second = decode_dss_signature(key.sign(signed.encode(), ec.ECDSA(hashes.SHA256())))
    signature = to_base64url(first.to_bytes(32, "big") + second.to_bytes(32, "big"))
    return f"vapid t={signed}.{signature}, k={public_key}"


def _point(p256dh: str) -> ec.EllipticCurvePublicKey:
    try:
        return ec.EllipticCurvePublicKey.from_encoded_point(_CURVE, decode(p256dh, "p256dh"))
    except ValueError:
        raise BadSubscription("p256dh", "it is not a point on the curve P-256") from None


def _as_bytes(key: ec.EllipticCurvePublicKey) -> bytes:
    return key.public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)


def _derive(secret: bytes, salt: bytes, info: bytes, length: int) -> bytes:
    return HKDF(algorithm=hashes.SHA256(), length=length, salt=salt, info=info).derive(secret)
