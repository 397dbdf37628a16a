"""What a restore is asked for, what it found and what it did; and the restored store before its first start.

Logins are ended, and nothing runs before someone resumes it: the server that the backup was made of may still run, and
two servers must not fire the same wakes.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from wakeful.backup.age import Unlocks
from wakeful.backup.archive import ArchiveReader, Head
from wakeful.config.settings import Settings, find_risks
from wakeful.core import device_key as device_keys
from wakeful.core import ids
from wakeful.core.device_key import has_device_key, to_recovery_key
from wakeful.core.errors import Conflict, NotFound, Unavailable
from wakeful.core.types import FOREVER, Pause, Token, User, Wake
from wakeful.runs import rules as runs_rules
from wakeful.runs.claims import end_wake
from wakeful.store.store import Tx

# Prepare a restored store for its first start: logins are ended, and nothing runs before someone resumes it.
#
# The server that the backup was made of may still run. Two servers must not fire the same wakes.


_PAGE = 1_000
_SHOWN = 10  # wakes of the report


@dataclass(frozen=True, slots=True, kw_only=True)
class Person:
    """A user, and the tokens that still work."""

    user: User
    tokens: Sequence[Token]


@dataclass(frozen=True, slots=True, kw_only=True)
class Restored:
    """A restored store, and the wakes that run when it is resumed."""

    people: Sequence[Person]
    browsers: int  # that were logged out
    agents: int
    interrupted: int  # runs
    overdue: int  # wakes that came due since the backup was made; each runs once when it is resumed
    waiting: int  # wakes with a later time
    next_wakes: Sequence[Wake]


async def settle_restored(tx: Tx, made_at: str, now: datetime) -> Restored:
    """End logins and unfinished runs, and pause everything."""
    browsers = await tx.accounts.end_logins(now)
    users = await tx.accounts.users()
    interrupted = 0
    for user in users:
        interrupted += await _interrupt(tx, user.id, now)
        await _pause(tx, user.id, made_at, now)
    wakes = [wake for user in users for wake in await _live(tx, user.id)]
    later = sorted((wake for wake in wakes if wake.nominal_at > now), key=lambda wake: wake.nominal_at)
    return Restored(
        people=[Person(user=user, tokens=await tx.accounts.tokens_of(user.id, now)) for user in users],
        browsers=browsers,
        agents=sum([len(await tx.agents.of_user(user.id)) for user in users]),
        interrupted=interrupted,
        overdue=len(wakes) - len(later),
        waiting=len(later),
        next_wakes=later[:_SHOWN],
    )


async def _pause(tx: Tx, user_id: str, made_at: str, now: datetime) -> None:
    reason = f"Restored from a backup of {made_at}. Resume when no other server runs with the same data."
    pause = Pause(id=ids.new_id(now), user_id=user_id, agent_id=None, started_at=now, until=FOREVER, reason=reason)
    await tx.agents.end_pauses(user_id, None, now)
    await tx.agents.add_pause(pause)


async def _interrupt(tx: Tx, user_id: str, now: datetime) -> int:
    """End the runs of a user that a pause would not hold; a person can continue them."""
    count = 0
    for status in ("running", "queued"):
        before = None
        while found := await tx.runs.of_user(user_id, status=status, before=before, most=_PAGE):
            before = (found[-1].queued_at, found[-1].id)
            for run in found:
                ended = runs_rules.interrupt_restored(run, now)
                if ended is None:
                    continue
                if status == "running":
                    await tx.runs.recover(ended)
                else:
                    await tx.runs.end_queued(run.id, "interrupted", "restored", now)
                if run.wake_id is not None and not (await tx.wakes.get(run.wake_id)).is_recurring:
                    await end_wake(tx, ended, "failed", "interrupted", now, ended.error)
                count += 1
    return count


async def _live(tx: Tx, user_id: str) -> list[Wake]:
    wakes: list[Wake] = []
    after = None
    while found := await tx.wakes.of_user(user_id, is_live=True, after=after, most=_PAGE):
        wakes += found
        after = (found[-1].nominal_at, found[-1].id)
    return wakes


class NotEmpty(Conflict):
    code = "restore_target_not_empty"


class OtherStoreKind(Conflict):
    code = "other_store_kind"


class DeviceKeyNeeded(NotFound):
    code = "device_key_needed"


class OtherDeviceKeyHere(Conflict):
    code = "other_device_key_here"


class CannotRestore(Unavailable):
    code = "cannot_restore"


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A backup that was read and checked, before it is put into place."""

    head: Head
    restored: Restored
    place: str  # where to
    replaces: bool
    settings_file: Path | None  # where the settings in it go
    has_keys: bool
    is_proven: bool  # one who has the device key of this machine made the backup
    risks: Sequence[str]  # what in the settings and beside them could do harm, if somebody else made it
    locked: Sequence[str]  # agents whose database the device key does not open
    left_out: Sequence[str]
    changed: Sequence[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class RestoreOptions:
    """Callbacks that open a backup, ask and show progress."""

    find_keys: Callable[[bool], Sequence[Unlocks]]  # given whether there is a passphrase
    replaces: bool = False
    confirm: Callable[[Plan], None] = lambda _: None  # may raise
    on_step: Callable[[str], None] = lambda _: None
    on_bytes: Callable[[str, int], None] = lambda _what, _size: None


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """A restore that is done."""

    plan: Plan
    aside: Path | None  # the folder with the old data
    recovery_key: str | None  # of a device key that came with the backup


def place_key(settings: Settings, key: bytes) -> str | None:
    """Write a device key that came with the backup, and return its recovery key."""
    if settings.device_key is not None or has_device_key(settings.config_dir):
        return None
    device_keys.restore_device_key(settings.config_dir, to_recovery_key(key))
    return to_recovery_key(key)


def whole_settings(reader: ArchiveReader, found: bytes | None) -> bytes | None:
    """Return the settings file with its secrets, if the backup has them."""
    whole = None if reader.keys is None else reader.keys.settings
    return found if whole is None else whole.encode()


def find_settings_risks(settings_text: bytes | None) -> list[str]:
    """Return what in a settings file could do harm, if somebody else made it."""
    return [] if settings_text is None else find_risks(settings_text.decode(errors="replace"))
