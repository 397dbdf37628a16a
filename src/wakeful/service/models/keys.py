"""Encrypt the keys of models with the device key, bound to the provider and address that they were given for."""

from wakeful.domain.models.models import Model, ModelKeyUnreadable
from wakeful.service import device_encryption

_PURPOSE = "wakeful model key 1"


def encrypt(device_key: bytes, key: str, provider: str, address: str) -> str:
    """Return a key encrypted as hexadecimal text; it decrypts only with the same provider and address."""
    return device_encryption.encrypt(device_key, key, (_PURPOSE, provider, address))


def decrypt(device_key: bytes, model: Model) -> str | None:
    """Return the key of a model that was added; None if it has none."""
    if model.key is None:
        return None
    key = device_encryption.decrypt(device_key, model.key, (_PURPOSE, model.provider, model.address))
    if key is None:
        raise ModelKeyUnreadable(model.name)
    return key


def rewrap(old: bytes, new: bytes, provider: str, address: str, encrypted: str) -> str | None:
    """Return a key encrypted with a new device key; None if it has that one already, or neither decrypts it."""
    return device_encryption.rewrap(old, new, encrypted, (_PURPOSE, provider, address))
