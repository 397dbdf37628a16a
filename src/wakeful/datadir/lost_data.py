"""Detects a lost store or device key, so that it is not taken for a first start."""

from pathlib import Path

from wakeful.config.settings import Settings
from wakeful.core.device_key import KEY_FILE, has_device_key, is_rotating
from wakeful.core.errors import Unavailable
from wakeful.datadir.files import STORE_FILE
from wakeful.homes import directories
from wakeful.store.drivers.sqlite import size_of


class StoreMissing(Unavailable):
    code = "store_missing"


class StoreLeftBehind(Unavailable):
    code = "store_left_behind"


class StoreMoved(Unavailable):
    code = "store_moved"


class DeviceKeyMissing(Unavailable):
    code = "device_key_missing"


def find_traces(data_dir: Path) -> list[str]:
    """List the signs, other than the store, that a server has used this data directory before."""
    found: list[str] = []
    agents = data_dir / "agents"
    count = sum(1 for each in agents.iterdir() if each.is_dir()) if agents.is_dir() else 0
    if count:
        found.append(f"files of {count} agent{'s' if count > 1 else ''} in agents/")
    store = data_dir / STORE_FILE
    wal = store.with_name(f"{STORE_FILE}-wal")
    # If the store has content, the journal is only the rest of an interrupted first start.
    if not size_of(store) and size_of(wal):
        found.append(f"the store's journal {wal.name} ({size_of(wal):,} bytes)")
    copies = len(list((data_dir / "backups").glob("*.sqlite")))
    if copies:
        found.append(f"{copies} cop{'ies' if copies > 1 else 'y'} of the store in backups/")
    directory = directories.find_directory(data_dir)
    if directory is not None and directory.started_at is not None:
        at = directory.started_at.replace("T", " ").replace("+00:00", " UTC")
        found.append(f"{directories.ID_FILE}, which says that a server ran here first on {at}")
    return found


def is_first_start(settings: Settings) -> bool:
    """Return whether no server has used this data directory before, and the store will be in it."""
    return (
        settings.database_url is None
        and not size_of(settings.data_dir / STORE_FILE)
        and not find_traces(settings.data_dir)
    )


def check_not_moved(settings: Settings) -> None:
    """Refuse to start with an embedded store that was moved to PostgreSQL, where the same wakes fire."""
    directory = directories.find_directory(settings.data_dir)
    if settings.database_url is not None or directory is None or directory.move is None:
        return
    move = directory.move
    raise StoreMoved(
        f"The store in {str(settings.data_dir)!r} was moved to PostgreSQL ({move.to}) on {move.at}. Set "
        "WAKEFUL_DATABASE_URL (database_url) to that database. To use the embedded store again as it was then, run "
        "`wakeful move --undo`."
        if move.is_done
        else f"A move of the store in {str(settings.data_dir)!r} to PostgreSQL ({move.to}) was begun on {move.at} and "
        "is not finished. Nothing was lost. Go on with `wakeful move`, or go back to the embedded store with "
        "`wakeful move --undo`."
    )


def check_empty_store(settings: Settings) -> None:
    """Refuse to start with an empty store in a data directory that has been used."""
    data_dir = settings.data_dir
    store = data_dir / STORE_FILE
    start_over = (
        f"To start without it, `wakeful serve --new` moves the data in {str(data_dir)!r} into a folder "
        "set-aside-TIME there; it deletes nothing."
    )
    if settings.database_url is not None and size_of(store):
        raise StoreLeftBehind(
            f"The PostgreSQL database is empty, and there is an embedded store with content at {str(store)!r}. Nothing "
            "was changed. To move its content to PostgreSQL, run `wakeful move`. To use the embedded store, unset "
            f"WAKEFUL_DATABASE_URL (database_url). {start_over}"
        )
    traces = find_traces(data_dir)
    if not traces:
        return
    used = f"the data directory {str(data_dir)!r} has been used before: it has {'; '.join(traces)}"
    if settings.database_url is not None:
        raise StoreMissing(
            f"The PostgreSQL database is empty, but {used}. Nothing was changed. If it is the wrong database, correct "
            f"WAKEFUL_DATABASE_URL (database_url); if its content is lost, restore it from a backup. {start_over}"
        )
    is_ours = "missing" if not store.exists() else "empty (0 bytes)" if not size_of(store) else "without content"
    directory = directories.find_directory(data_dir)
    elsewhere = (
        " The store was on PostgreSQL: set WAKEFUL_DATABASE_URL (database_url) again to use it."
        if directory is not None and directory.store == "postgres"
        else ""
    )
    raise StoreMissing(
        f"The store {str(store)!r} is {is_ours}, but {used}. Nothing was changed.{elsewhere} Restore the store from a "
        f"backup, with its -wal file if the copy has one; copies made before upgrades are in "
        f"{str(data_dir / 'backups')!r}. {start_over}"
    )


def check_device_key(settings: Settings) -> None:
    """Refuse to create a device key if there is data that was encrypted with another one."""
    if settings.device_key is not None or has_device_key(settings.config_dir) or is_rotating(settings.config_dir):
        return
    data_dir = settings.data_dir
    directory = directories.find_directory(data_dir)
    is_store_encrypted = settings.database_url is None and settings.store_encryption
    if directory is not None and directory.takes_any_key and not is_store_encrypted:
        return  # someone has declared the old key lost
    traces = find_traces(data_dir)
    if size_of(data_dir / STORE_FILE):
        traces.insert(0, f"the store {STORE_FILE}")
    if directory is not None and directory.key_fingerprint is not None and not traces:
        traces.append(f"{directories.ID_FILE}, which names its fingerprint")
    if not traces:
        return
    known = directory is not None and directory.key_fingerprint
    named = f" (fingerprint {known})" if known else ""
    of_another = "" if settings.database_url is None else ", from another node on the same data directory"
    lost = (
        "If it is lost for good, `wakeful serve --new` moves the data into a folder set-aside-TIME and starts without "
        "it; it deletes nothing."
        if settings.database_url is None
        else f'If it is lost for good, set "device_key" to null in {str(data_dir / directories.ID_FILE)!r}: then '
        "the server starts with a new one, and the agents' databases stay locked."
    )
    raise DeviceKeyMissing(
        f"The device key{named} is missing: there is no {str(settings.config_dir / KEY_FILE)!r}, and the data in "
        f"{str(data_dir)!r} is encrypted with it ({'; '.join(traces)}). No new one was made, and nothing was changed. "
        "If the configuration directory was moved, set WAKEFUL_CONFIG_DIR to it. Otherwise restore device.key from a "
        f"backup{of_another}, or from the recovery key with `wakeful key restore`. {lost}"
    )
