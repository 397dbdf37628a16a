"""Encrypt the keys of models with the device key, bound to the provider and address that they were given for."""

import os

import orjson
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from wakeful.domain.models.models import Model, ModelKeyUnreadable

_NONCE = 12  # bytes
_PURPOSE = "wakeful model key 1"


def encrypt(device_key: bytes, key: str, provider: str, address: str) -> str:
    """Return a key encrypted as hexadecimal text; it decrypts only with the same provider and address."""
    nonce = os.urandom(_NONCE)
    return (nonce + AESGCM(device_key).encrypt(nonce, key.encode(), _bound_to(provider, address))).hex()


def decrypt(device_key: bytes, model: Model) -> str | None:
    """Return the key of a model that was added; None if it has none."""
    if model.key is None:
        return None
    key = _open(device_key, model.key, model.provider, model.address)
    if key is None:
        raise ModelKeyUnreadable(model.name)
    return key


def rewrap(old: bytes, new: bytes, provider: str, address: str, encrypted: str) -> str | None:
    """Return a key encrypted with a new device key; None if it has that one already, or neither decrypts it."""
    if _open(new, encrypted, provider, address) is not None:
        return None
    key = _open(old, encrypted, provider, address)
    return None if key is None else encrypt(new, key, provider, address)


def _open(device_key: bytes, encrypted: str, provider: str, address: str) -> str | None:
    try:
        stored = bytes.fromhex(encrypted)
        return AESGCM(device_key).decrypt(stored[:_NONCE], stored[_NONCE:], _bound_to(provider, address)).decode()
    except (InvalidTag, ValueError):
        return None


def _bound_to(provider: str, address: str) -> bytes:
    # As JSON, so that no other pair of texts gives the same bytes.
    return orjson.dumps([_PURPOSE, provider, address])
