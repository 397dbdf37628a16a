"""Encrypt the secrets of hooks and webhooks with the device key, bound to what they are for."""

from wakeful.core import device_key as keys

_PURPOSE = "wakeful hook secret 1"


def encrypt_secret(device_key: bytes, secret: str, hook_id: str) -> str:
    """Return a secret encrypted as hexadecimal text; it decrypts only for the same hook."""
    return keys.encrypt(device_key, secret, (_PURPOSE, hook_id))


def decrypt_secret(device_key: bytes, encrypted: str, hook_id: str) -> str | None:
    """Return a secret; None if it was encrypted with another device key or for another hook."""
    return keys.decrypt(device_key, encrypted, (_PURPOSE, hook_id))


def rewrap_secret(old: bytes, new: bytes, hook_id: str, encrypted: str) -> str | None:
    """Return a secret encrypted with a new device key; None if it has that one already, or neither decrypts it."""
    return keys.rewrap(old, new, encrypted, (_PURPOSE, hook_id))
