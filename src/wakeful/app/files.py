"""What lies on this machine: the store's file, and the device key that everything here is encrypted with."""

from pathlib import Path

from wakeful.agentdb import keys
from wakeful.agentdb.keys import has_device_key, load_device_key, to_recovery_key
from wakeful.agentdb.vault import Vault
from wakeful.config import Settings
from wakeful.domain.errors import Conflict, NotFound, WakefulError
from wakeful.store.database import Database
from wakeful.store.postgres import PostgresDatabase
from wakeful.store.sqlite import SqliteDatabase, change_key, hold

STORE_FILE = "wakeful.sqlite"

StartError = WakefulError  # what a start may end with and a person can answer; commands know no other room's names


def database_of(settings: Settings) -> Database:
    """Return the store's database, not opened yet."""
    if settings.database_url is not None:
        return PostgresDatabase(settings.database_url.get_secret_value())
    return SqliteDatabase(
        settings.data_dir / STORE_FILE, device_key_of(settings) if settings.store_encryption else None
    )


def device_key_of(settings: Settings) -> bytes:
    """Return the device key; the first start makes one."""
    if settings.device_key is not None:
        return bytes.fromhex(settings.device_key.get_secret_value())
    return load_device_key(settings.config_dir)


def show_recovery_key(settings: Settings) -> str:
    """Write the device key of these settings for paper. Makes none."""
    if settings.device_key is None and not has_device_key(settings.config_dir):
        raise NotFound(
            f"There is no device key in {str(settings.config_dir)!r}. The first `wakeful serve` makes one and prints "
            "its recovery key; if there was one, put it back with `wakeful key restore`."
        )
    return to_recovery_key(device_key_of(settings))


def rotate_device_key(settings: Settings) -> tuple[str, list[str]]:
    """Put another device key in place of the present one, while no server runs, or finish what was cut off.

    Returns the new recovery key, and the ids of agents whose database was locked before and is so still.
    """
    if settings.device_key is not None:
        raise Conflict(
            "The device key comes from the settings (WAKEFUL_DEVICE_KEY or device_key_file), so it is not ours to "
            "change. Take it out of them and put it into the file with `wakeful key restore` first."
        )
    if not has_device_key(settings.config_dir):
        raise NotFound(f"There is no device key in {str(settings.config_dir)!r}, so there is nothing to change.")
    agents = settings.data_dir / "agents"
    with hold(settings.data_dir):
        old, new = keys.begin_rotation(settings.config_dir)
        vault = Vault(lambda agent_id: agents / agent_id, lambda: new)
        folders = sorted(agents.iterdir()) if agents.exists() else []
        locked = [folder.name for folder in folders if not vault.rewrap(folder.name, old)]
        if settings.database_url is None and settings.store_encryption:
            change_key(settings.data_dir / STORE_FILE, old, new)
        keys.end_rotation(settings.config_dir)
    return to_recovery_key(new), locked


def restore_device_key(settings: Settings, recovery_key: str) -> Path:
    """Put the device key back from paper; one that is there is moved aside."""
    if settings.device_key is not None:
        raise Conflict("The device key comes from WAKEFUL_DEVICE_KEY, so no file is read. Change it there.")
    return keys.restore_device_key(settings.config_dir, recovery_key)
