"""The store's database, and showing, rotating and restoring the device key."""

from datetime import datetime, timedelta
from functools import partial
from pathlib import Path

from wakeful.agentdb.errors import DatabaseLocked
from wakeful.agentdb.keys import Vault, fits, unwraps_any
from wakeful.config.settings import Settings
from wakeful.core import device_key as core_device_key
from wakeful.core.clock import Clock, SystemClock
from wakeful.core.device_key import fingerprint, has_device_key, load_device_key, to_recovery_key
from wakeful.core.errors import Conflict, NotFound
from wakeful.datadir.files import MOVED_AGENTS, MOVED_FILE, STORE_FILE, finish_held
from wakeful.datadir.lost_data import check_empty_store
from wakeful.homes import directories
from wakeful.homes import service as home_keys
from wakeful.models.catalog import rewrap_key
from wakeful.outgoing import web_push
from wakeful.store.drivers.database import Database
from wakeful.store.drivers.postgres import PostgresDatabase
from wakeful.store.drivers.sqlite import SqliteDatabase, change_key, hold, size_of
from wakeful.store.drivers.sqlite_thread import SEQUENCE_FILE, Sequence
from wakeful.store.errors import StoreUnreadable
from wakeful.store.models import change_keys, change_keys_in_postgres, read_database_keys


def database_of(settings: Settings, clock: Clock | None = None) -> Database:
    """Return the store's database, not opened yet."""
    if settings.database_url is not None:
        lease = timedelta(seconds=settings.lease_seconds)
        url = settings.database_url.get_secret_value()
        return PostgresDatabase(url, most_connections=settings.database_connections, lease=lease)
    key = device_key_of(settings) if settings.store_encryption else None
    sequence = Sequence(settings.data_dir / SEQUENCE_FILE, (clock or SystemClock()).now)
    return SqliteDatabase(settings.data_dir / STORE_FILE, key, sequence)


def device_key_of(settings: Settings) -> bytes:
    """Return the device key; created at the first start."""
    if settings.device_key is not None:
        return bytes.fromhex(settings.device_key.get_secret_value())
    return load_device_key(settings.config_dir)


def show_recovery_key(settings: Settings) -> str:
    """Return the recovery key. Never creates a device key."""
    if settings.device_key is None and not has_device_key(settings.config_dir):
        raise NotFound(
            f"There is no device key in {str(settings.config_dir)!r}. The first `wakeful serve` makes one and prints "
            "its recovery key; if there was one, put it back with `wakeful key restore`."
        )
    return to_recovery_key(device_key_of(settings))


def rotate_device_key(settings: Settings) -> tuple[str, list[str]]:
    """Replace the device key while no server runs, or finish an interrupted rotation.

    Returns the new recovery key, and the ids of agents whose database was locked before and still is.
    """
    if settings.device_key is not None:
        raise Conflict(
            "The device key comes from the settings (WAKEFUL_DEVICE_KEY or device_key_file), so it cannot be changed "
            "here. Remove it from them and put it into the file with `wakeful key restore` first."
        )
    if not has_device_key(settings.config_dir):
        raise NotFound(f"There is no device key in {str(settings.config_dir)!r}, so there is nothing to change.")
    places = [settings.data_dir / "agents", settings.data_dir / MOVED_AGENTS]
    with hold(settings.data_dir):
        finish_held(settings)  # restored data that is put into place later would have the old key
        if settings.database_url is None and not size_of(settings.data_dir / STORE_FILE):
            check_empty_store(settings)  # a store that is restored later would have the old key
        old, new = core_device_key.begin_rotation(settings.config_dir)
        locked = [name for agents in places if agents.exists() for name in _rewrap_agents(agents, old, new)]
        if settings.database_url is None and settings.store_encryption:
            change_key(settings.data_dir / STORE_FILE, old, new)
        if settings.store_encryption:
            change_key(settings.data_dir / MOVED_FILE, old, new)  # so that a move can still be undone
        locked += _change_stored_keys(settings, old, new)
        directory = directories.find_directory(settings.data_dir)
        if directory is not None and directory.key_fingerprint is not None:
            directories.save_key(settings.data_dir, fingerprint(new))
        core_device_key.end_rotation(settings.config_dir)
    return to_recovery_key(new), locked


def _rewrap_agents(agents: Path, old: bytes, new: bytes) -> list[str]:
    """Encrypt the keys of agents' databases in a folder with the new device key; returns those that stay locked."""
    vault = Vault(lambda agent_id: agents / agent_id, lambda: new)
    return [folder.name for folder in sorted(agents.iterdir()) if not vault.rewrap(folder.name, old)]


def _change_stored_keys(settings: Settings, old: bytes, new: bytes) -> list[str]:
    """Encrypt the keys of models, push messages and homes, and the secrets of hooks, with the new device key.

    Returns the ids of agents whose database on PostgreSQL was locked before and still is.
    """
    vault, locked = Vault(lambda _: settings.data_dir, lambda: new), list[str]()

    def rewrap_database_key(agent_id: str, text: str) -> str | None:
        try:
            return vault.rewrap_text(agent_id, text, old)
        except DatabaseLocked:
            locked.append(agent_id)
            return None

    changes = {
        "models": partial(rewrap_key, old, new),
        "push_key": partial(web_push.rewrap_key, old, new),
        "hooks secret": partial(core_device_key.rewrap_secret, old, new),
        "hooks old_secret": partial(core_device_key.rewrap_secret, old, new),
        "webhooks secret": partial(core_device_key.rewrap_secret, old, new),
        "webhooks old_secret": partial(core_device_key.rewrap_secret, old, new),
        "homes database_key": rewrap_database_key,
        "homes files_key": partial(home_keys.rewrap_key, old, new),
    }
    if settings.database_url is not None:
        change_keys_in_postgres(settings.database_url.get_secret_value(), changes)
    else:
        change_keys(settings.data_dir / STORE_FILE, new if settings.store_encryption else None, changes)
    return locked


def restore_device_key(settings: Settings, recovery_key: str) -> Path:
    """Restore the device key from its recovery key; an existing one is moved aside."""
    if settings.device_key is not None:
        raise Conflict("The device key comes from WAKEFUL_DEVICE_KEY, so no file is read. Change it there.")
    key = core_device_key.from_recovery_key(recovery_key)
    directory = directories.find_directory(settings.data_dir)
    is_other = directory is not None and directory.key_fingerprint not in (None, fingerprint(key))
    if is_other and not (_fits_databases(settings, key) and _opens_store(settings, key)):
        raise Conflict(
            f"This is the recovery key of another device key: it opens none of the databases in "
            f"{str(settings.data_dir)!r}. Nothing was changed. Look for the one that the first start there printed."
        )
    _take_over_stored_keys(settings, key)
    path = core_device_key.restore_device_key(settings.config_dir, recovery_key)
    if is_other:  # the fingerprint on file was wrong
        directories.save_key(settings.data_dir, fingerprint(key))
    return path


def _fits_databases(settings: Settings, key: bytes) -> bool:
    """Return whether a device key fits a database of an agent, or there is none."""
    if not fits(settings.data_dir / "agents", key):
        return False
    if settings.database_url is None:
        return True
    known = read_database_keys(settings.database_url.get_secret_value())
    return not known or unwraps_any(known, key)


def _take_over_stored_keys(settings: Settings, key: bytes) -> None:
    """Encrypt with a device key what another one encrypted in PostgreSQL while the right one was missing.

    Only if the databases show which is the right one: the other may be that of all other nodes.
    """
    if settings.database_url is None or not has_device_key(settings.config_dir):
        return
    meanwhile = device_key_of(settings)
    if _fits_databases(settings, key) and not _fits_databases(settings, meanwhile):
        _change_stored_keys(settings, meanwhile, key)


def _opens_store(settings: Settings, key: bytes) -> bool:
    """Return whether a key opens the embedded store, or there is none to open."""
    path = settings.data_dir / STORE_FILE
    if settings.database_url is not None or not settings.store_encryption or not size_of(path):
        return True
    try:
        SqliteDatabase(path, key).connect().close()
    except StoreUnreadable:
        return False
    return True


def note_started(settings: Settings, device_key: bytes, now: datetime) -> None:
    """Record that a start succeeded and that the recovery key, if new, was shown."""
    if settings.device_key is None:
        core_device_key.note_recovery_key_shown(settings.config_dir)
    directory = directories.load_directory(settings.data_dir)
    is_embedded = settings.database_url is None
    kind = "embedded" if is_embedded else "postgres"
    if directory.started_at is None or directory.store != kind:
        at = directory.started_at or now.isoformat(timespec="seconds")
        directories.save_started(settings.data_dir, at, kind)
    # On PostgreSQL the fingerprint is saved when nodes compare their keys.
    is_known = directory.key_fingerprint is not None and not settings.store_encryption
    if is_embedded and not is_known and directory.key_fingerprint != fingerprint(device_key):
        directories.save_key(settings.data_dir, fingerprint(device_key))
