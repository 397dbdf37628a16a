"""Checks that this node has the device key of the other nodes on a store.

The key that signs push messages is the known ciphertext: the first start encrypts it with the device key.
"""

import logging
from pathlib import Path

from wakeful.service.agents import directory_file
from wakeful.service.agents.directories import OtherDeviceKey
from wakeful.service.inbox.push import Push
from wakeful.store.store import Store

log = logging.getLogger(__name__)


async def check_shared_key(store: Store, push: Push, data_dir: Path, config_dir: Path) -> None:
    """Raise if the keys in a shared store are encrypted with another device key.

    Otherwise this node could not read the keys of models, and its runs would fail while those of other nodes do not.
    """
    problem = (await push.offer()).problem
    if problem is None:
        return
    if not store.is_shared:  # the server has other things to do
        log.warning("push messages cannot be signed", extra={"problem": problem})
        return
    directory = directory_file.find(data_dir)
    if directory is not None and directory.takes_any_key:  # someone has declared the old key lost
        log.warning("the device key was replaced: browsers have to turn push messages on again")
        await push.replace_key()
        return
    file = data_dir / directory_file.FILE_NAME
    raise OtherDeviceKey(
        f"This node has another device key than the nodes that have used this PostgreSQL database: the one in "
        f"{str(config_dir)!r} does not decrypt the keys that are stored there. Nothing was changed. Copy device.key "
        "from the config directory of a node that works, or restore it with `wakeful key restore`. If that key is lost "
        f'for good, set "device_key" to null in {str(file)!r}: then the server starts, and what was encrypted with it '
        "stays locked."
    )
