"""Encrypt the keys of models with the device key, bound to the provider and address that they were given for."""

from wakeful.core import device_key as core_device_key
from wakeful.core.records import Model
from wakeful.models.rules import ModelKeyUnreadable

_PURPOSE = "wakeful model key 1"


def encrypt_key(device_key: bytes, key: str, provider: str, address: str) -> str:
    """Return a key encrypted as hexadecimal text; it decrypts only with the same provider and address."""
    return core_device_key.encrypt(device_key, key, (_PURPOSE, provider, address))


def decrypt_key(device_key: bytes, model: Model) -> str | None:
    """Return the key of a model that was added; None if it has none."""
    if model.key is None:
        return None
    key = core_device_key.decrypt(device_key, model.key, (_PURPOSE, model.provider, model.address))
    if key is None:
        raise ModelKeyUnreadable(model.name)
    return key


def rewrap_key(old: bytes, new: bytes, provider: str, address: str, encrypted: str) -> str | None:
    """Return a key encrypted with a new device key; None if it has that one already, or neither decrypts it."""
    return core_device_key.rewrap(old, new, encrypted, (_PURPOSE, provider, address))
