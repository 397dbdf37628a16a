"""Reading the settings of this machine."""

from typing import TYPE_CHECKING

from wakeful.cli.fail import fail

if TYPE_CHECKING:
    from wakeful.config import Settings


def read_settings(*, host: str | None = None, port: int | None = None) -> "Settings":
    """Return all settings, or end the command with the errors in them."""
    from wakeful.config import ConfigError, load_settings

    try:
        return load_settings(host=host, port=port)
    except ConfigError as error:
        fail(str(error))
