"""The key that signs push messages (VAPID, RFC 8292): one for all nodes, encrypted in the store with the device key."""

from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_der_private_key,
)

from wakeful.domain.inbox.push import PushKeyUnreadable
from wakeful.service import device_encryption
from wakeful.service.inbox.push_encryption import to_base64url
from wakeful.store.inbox.push import PushKey

_PURPOSE = "wakeful push key 1"


def make(device_key: bytes) -> PushKey:
    """Create a key pair."""
    key = ec.generate_private_key(ec.SECP256R1())
    public_key = to_base64url(key.public_key().public_bytes(Encoding.X962, PublicFormat.UncompressedPoint))
    secret = key.private_bytes(Encoding.DER, PrivateFormat.PKCS8, NoEncryption()).hex()
    encrypted = device_encryption.encrypt(device_key, secret, (_PURPOSE, public_key))
    return PushKey(public_key=public_key, encrypted_key=encrypted)


def decrypt(device_key: bytes, key: PushKey) -> ec.EllipticCurvePrivateKey:
    """Return the private key."""
    secret = device_encryption.decrypt(device_key, key.encrypted_key, (_PURPOSE, key.public_key))
    if secret is None:
        raise PushKeyUnreadable
    opened = load_der_private_key(bytes.fromhex(secret), None)
    assert isinstance(opened, ec.EllipticCurvePrivateKey)
    return opened


def rewrap(old: bytes, new: bytes, public_key: str, encrypted: str) -> str | None:
    """Return the key encrypted with a new device key; None if it has that one already, or neither decrypts it."""
    return device_encryption.rewrap(old, new, encrypted, (_PURPOSE, public_key))
