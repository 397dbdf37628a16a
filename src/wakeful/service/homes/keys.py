"""Encrypt the key of the files of a home with the device key, bound to the agent."""

from wakeful.service import device_encryption

_PURPOSE = "wakeful home files 1"


def encrypt(device_key: bytes, key: bytes, agent_id: str) -> str:
    return device_encryption.encrypt(device_key, key.hex(), (_PURPOSE, agent_id))


def decrypt(device_key: bytes, encrypted: str, agent_id: str) -> bytes | None:
    """Return the key; None if it was encrypted with another device key."""
    key = device_encryption.decrypt(device_key, encrypted, (_PURPOSE, agent_id))
    return None if key is None else bytes.fromhex(key)


def rewrap(old: bytes, new: bytes, agent_id: str, encrypted: str) -> str | None:
    """Return a key encrypted with a new device key; None if it has that one already, or neither decrypts it."""
    return device_encryption.rewrap(old, new, encrypted, (_PURPOSE, agent_id))
