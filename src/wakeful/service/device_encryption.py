"""Encrypt short secrets in the store with the device key, bound to what they are for."""

import os
from collections.abc import Sequence

import orjson
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

_NONCE = 12  # bytes


def encrypt(device_key: bytes, secret: str, bound_to: Sequence[str]) -> str:
    """Return a secret encrypted as hexadecimal text; it decrypts only with the same texts in `bound_to`."""
    nonce = os.urandom(_NONCE)
    return (nonce + AESGCM(device_key).encrypt(nonce, secret.encode(), _as_bytes(bound_to))).hex()


def decrypt(device_key: bytes, encrypted: str, bound_to: Sequence[str]) -> str | None:
    """Return a secret; None if it was encrypted with another device key or for something else."""
    try:
        stored = bytes.fromhex(encrypted)
        return AESGCM(device_key).decrypt(stored[:_NONCE], stored[_NONCE:], _as_bytes(bound_to)).decode()
    except (InvalidTag, ValueError):
        return None


def rewrap(old: bytes, new: bytes, encrypted: str, bound_to: Sequence[str]) -> str | None:
    """Return a secret encrypted with a new device key; None if it has that one already, or neither decrypts it."""
    if decrypt(new, encrypted, bound_to) is not None:
        return None
    secret = decrypt(old, encrypted, bound_to)
    return None if secret is None else encrypt(new, secret, bound_to)


def _as_bytes(texts: Sequence[str]) -> bytes:
    # As JSON, so that no other texts give the same bytes.
    return orjson.dumps(list(texts))
