"""Encryption of push messages for a browser (RFC 8291, RFC 8188), and the signature for its push service (RFC 8292).

The key that signs (VAPID) is one for all nodes, encrypted in the store with the device key.
"""

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
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_der_private_key,
)

from wakeful.core import device_key as core_device_key
from wakeful.outgoing.rules import BadSubscription, PushKeyUnreadable, decode
from wakeful.store.notices import PushKey

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


# ── The key that signs ───────────────────────────────────────────────────────────────────────────────────────────────

_PURPOSE = "wakeful push key 1"


def make_key(device_key: bytes) -> PushKey:
    """Create a key pair."""
    key = ec.generate_private_key(ec.SECP256R1())
    public_key = to_base64url(key.public_key().public_bytes(Encoding.X962, PublicFormat.UncompressedPoint))
    secret = key.private_bytes(Encoding.DER, PrivateFormat.PKCS8, NoEncryption()).hex()
    encrypted = core_device_key.encrypt(device_key, secret, (_PURPOSE, public_key))
    return PushKey(public_key=public_key, encrypted_key=encrypted)


def decrypt_key(device_key: bytes, key: PushKey) -> ec.EllipticCurvePrivateKey:
    """Return the private key."""
    secret = core_device_key.decrypt(device_key, key.encrypted_key, (_PURPOSE, key.public_key))
    if secret is None:
        raise PushKeyUnreadable
    opened = load_der_private_key(bytes.fromhex(secret), None)
    assert isinstance(opened, ec.EllipticCurvePrivateKey)
    return opened


def rewrap_key(old: bytes, new: bytes, public_key: str, encrypted: str) -> str | None:
    """Return the key encrypted with a new device key; None if it has that one already, or neither decrypts it."""
    return core_device_key.rewrap(old, new, encrypted, (_PURPOSE, public_key))
