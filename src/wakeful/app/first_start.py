"""Makes sure, at every start, that there is an owner with a token.

The token comes from the settings, or is created once and saved in a file that only this user of the machine can read,
where commands on the same machine find it.
"""

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from wakeful.config.settings import Settings
from wakeful.core.clock import Clock
from wakeful.core.errors import Unavailable
from wakeful.core.files import draft_of
from wakeful.core.identity import Identity, TokenTaken
from wakeful.core.resources import remedy_of
from wakeful.core.sources import TOKEN_FILE
from wakeful.core.types import Token, User
from wakeful.datadir.move import refuse_moving
from wakeful.nodes.service import Nodes
from wakeful.people.service import digest_of, make_secret
from wakeful.store.people import OWNER_TOKEN
from wakeful.store.store import Store, Tx

# The same id on every node, so that two nodes that start at once add one owner.
FIRST_OWNER = "00000000-0000-8000-8000-000000000001"


class TokenFileUnusable(Unavailable):
    code = "token_file_unusable"


class _Revoked(TokenTaken):
    pass


async def settle_owner(store: Store, clock: Clock, settings: Settings, nodes: Nodes) -> Identity:
    """Make sure that there is an owner with the token of these settings. May be called at every start, on every node.

    Owner tokens of earlier starts are revoked, except between nodes that share a store: those of running nodes stay,
    and those that a node created.
    """

    async def settle(secret: str, *, is_only: bool) -> Identity:
        return await _settle(store, clock, nodes, secret, is_only=is_only)

    if settings.token is not None:
        return await settle(settings.token.get_secret_value(), is_only=True)
    path = settings.config_dir / TOKEN_FILE
    secret = load_token(settings.config_dir) or keep_token(path, make_secret())
    try:
        return await settle(secret, is_only=not store.is_shared)
    except _Revoked:
        return await settle(_replace(path, make_secret()), is_only=not store.is_shared)


def load_token(config_dir: Path) -> str | None:
    """Read the owner's token that a start on this machine has saved, if there is one."""
    path = config_dir / TOKEN_FILE
    try:
        secret = path.read_text(encoding="ascii", errors="replace").strip()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise TokenFileUnusable(f"The token file {str(path)!r} cannot be read: {error.strerror}.") from error
    if not secret or not all("!" <= character <= "~" for character in secret):
        raise TokenFileUnusable(f"The token file {str(path)!r} holds no token. Delete it and restart.")
    return secret


async def _settle(store: Store, clock: Clock, nodes: Nodes, secret: str, *, is_only: bool) -> Identity:
    now, digest = clock.now(), digest_of(secret)

    async def work(tx: Tx) -> Identity:
        owners = await tx.accounts.hold_owners()
        if not owners:
            await tx.accounts.add_first_owner(User(id=FIRST_OWNER, name="Owner", role="owner", created_at=now))
            await refuse_moving(tx)  # after the insert, which waits for a move that begins at the same time
            owners = await tx.accounts.hold_owners()
        await _refuse_taken(tx, digest)
        token = Token(
            id=OWNER_TOKEN + digest[:16],
            user_id=owners[0].id,
            name="owner",
            kind="api",
            scope="admin",
            digest=digest,
            created_at=now,
        )
        await tx.accounts.put_owner_token(token)
        await nodes.keep_token(tx, token.id, is_only=is_only)
        return Identity(user=owners[0], scope="admin", token_id=token.id, token_name=token.name)

    return await store.write(work)


async def _refuse_taken(tx: Tx, digest: str) -> None:
    found = await tx.accounts.token_by_digest(digest)
    if found is None:
        return
    if found.revoked_at is not None:
        raise _Revoked("has been revoked")
    if not found.id.startswith(OWNER_TOKEN):
        raise TokenTaken(f"is also the one named {found.name!r}")


def keep_token(path: Path, secret: str) -> str:
    """Save the token if there is none; of two processes that start at once, the second uses the first one's."""
    with _draft(path, secret) as draft:
        try:
            path.hardlink_to(draft)  # unlike a rename, it never replaces
        except FileExistsError:
            return load_token(path.parent) or secret
    return secret


def _replace(path: Path, secret: str) -> str:
    with _draft(path, secret) as draft:
        draft.replace(path)
    return secret


@contextmanager
def _draft(path: Path, secret: str) -> Generator[Path]:
    try:
        with draft_of(path, f"{secret}\n".encode()) as draft:
            yield draft
    except OSError as error:
        raise TokenFileUnusable(
            f"The owner's token cannot be saved at {str(path)!r}: {error.strerror}. "
            + remedy_of(error, "Make the configuration directory writable, or set WAKEFUL_CONFIG_DIR or WAKEFUL_TOKEN.")
        ) from error
