"""Checks of the device key and the owner's token."""

from collections.abc import Iterator
from pathlib import Path

from wakeful.agentdb.keys.keys import FILE_NAME, fingerprint, has_device_key
from wakeful.app.checks.check import Check, warning, wrong
from wakeful.app.data.earlier_data import check_device_key
from wakeful.app.data.files import device_key_of
from wakeful.config import TOKEN_FILE, Settings
from wakeful.domain.errors import WakefulError
from wakeful.service.agents import directory_file


def check_keys(settings: Settings) -> Iterator[Check]:
    """Check that the device key is there, can be read, and is the one of this data; and who can read the secrets."""
    yield _check_device_key(settings)
    if settings.has_short_token:
        yield warning("token", "the owner's token is short and could be guessed", "Set WAKEFUL_TOKEN to a longer one.")
    elif settings.token is None and not (settings.config_dir / TOKEN_FILE).exists():
        yield Check(name="token", found="created at the first start")
    else:
        found = "from the settings" if settings.token else str(settings.config_dir / TOKEN_FILE)
        yield Check(name="token", found=found)
    open_files = [str(path) for path in _secret_files(settings) if path.exists() and path.stat().st_mode & 0o077]
    if open_files:
        yield wrong(
            "permissions",
            f"other users of this machine may read {', '.join(open_files)}",
            f"Run `chmod 600 {' '.join(open_files)}`. If others have used this machine, also rotate the keys.",
        )


def _check_device_key(settings: Settings) -> Check:
    try:
        check_device_key(settings)  # raises if there is data of a key that is missing
        if settings.device_key is None and not has_device_key(settings.config_dir):
            return Check(name="device key", found="created at the first start")
        known = directory_file.find(settings.data_dir)
        key = device_key_of(settings)
    except WakefulError as error:
        found, _, advice = error.message.partition(". ")
        return wrong("device key", found, advice or "Restore it with `wakeful key restore`.")
    if known is not None and known.key_fingerprint not in (None, fingerprint(key)):
        return wrong(
            "device key",
            f"it is not the key of the data in {settings.data_dir}",
            "Restore the right one with `wakeful key restore`, or set WAKEFUL_CONFIG_DIR to the directory that has it.",
        )
    found = "from the settings" if settings.device_key else str(settings.config_dir / FILE_NAME)
    return Check(name="device key", found=found)


def _secret_files(settings: Settings) -> list[Path]:
    return [settings.config_dir / name for name in (FILE_NAME, TOKEN_FILE, "contexts.json")]
