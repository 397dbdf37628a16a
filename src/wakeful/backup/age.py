"""Files in the age format (age-encryption.org/v1), written and read as a stream.

Only what backups need: X25519 recipients and passphrases, without ASCII armor. The usual programs open these files, and
the tests compare them with another implementation, pyrage. A server cannot use pyrage (1.4) itself: it holds the
interpreter's lock until a file is done; its streams pass 8 KiB at a time, which takes three times the processor time to
encrypt (0.4 instead of 1.1 GB/s) and four times to decrypt; and it takes a file with a passphrase whole into memory.
"""

import base64
import binascii
import hmac
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import scrypt, sha256
from typing import Protocol

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from wakeful.config.recipients import BadRecipient, from_bech32, parse_recipient, to_bech32
from wakeful.core.errors import Invalid

CHUNK = 64 * 1024
_TAG = 16
_LAST = b"\x01"
_VERSION = b"age-encryption.org/v1\n"
_X25519 = b"age-encryption.org/v1/X25519"
_SCRYPT = b"age-encryption.org/v1/scrypt"
_WORK = 18  # log2 of scrypt's N, as age has it: a quarter of a gigabyte, about a second
_MAX_WORK = 20  # a gigabyte
_MAX_HEADER_LINES = 1000
_MAX_LINE = 4096
_LINE = 64  # letters of a stanza's body


class NotAnAgeFile(Invalid):
    code = "not_an_age_file"


class BackupDamaged(Invalid):
    code = "backup_damaged"


class WrongBackupKey(Invalid):
    code = "wrong_backup_key"


class Readable(Protocol):
    def read(self, size: int, /) -> bytes: ...


# ── Keys ────────────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Identity:
    """A secret key; its public part is a recipient."""

    secret: bytes

    @classmethod
    def new(cls) -> "Identity":
        return cls(os.urandom(32))

    @classmethod
    def derived(cls, key: bytes) -> "Identity":
        """Return the identity of a device key."""
        return cls(derive(key, b"", b"wakeful backup"))

    @classmethod
    def parse(cls, text: str) -> "Identity":
        secret = from_bech32("age-secret-key-", text)
        if secret is None:
            raise BadRecipient("This is not an age identity: it begins with AGE-SECRET-KEY-1 and has 74 characters.")
        return cls(secret)

    @property
    def text(self) -> str:
        return to_bech32("age-secret-key-", self.secret).upper()

    @property
    def recipient(self) -> str:
        return to_bech32("age", self._public)

    @property
    def _public(self) -> bytes:
        return X25519PrivateKey.from_private_bytes(self.secret).public_key().public_bytes_raw()

    def unwrap(self, kind: str, arguments: Sequence[str], body: bytes) -> bytes | None:
        if kind != "X25519" or len(arguments) != 1:
            return None
        share = _decode(arguments[0])
        if len(share) != 32:
            raise _damaged_head()
        shared = X25519PrivateKey.from_private_bytes(self.secret).exchange(X25519PublicKey.from_public_bytes(share))
        return _unseal(derive(shared, share + self._public, _X25519), body)


@dataclass(frozen=True, slots=True)
class Passphrase:
    """A passphrase, and how much work it takes to try one."""

    text: str
    work: int = _WORK

    def unwrap(self, kind: str, arguments: Sequence[str], body: bytes) -> bytes | None:
        if kind != "scrypt" or len(arguments) != 2 or not arguments[1].isdigit():
            return None
        work = int(arguments[1])
        if work > _MAX_WORK:
            raise NotAnAgeFile(f"The passphrase of this file takes 2^{work} steps to check, more than is accepted.")
        return _unseal(_stretch(self.text, _decode(arguments[0]), work), body)


def read_identities(text: str) -> list[Identity]:
    """Return the identities in a file as age-keygen writes it: one a line, and comments."""
    lines = [line.strip() for line in text.splitlines()]
    return [Identity.parse(line) for line in lines if line and not line.startswith("#")]


# ── Encrypting ──────────────────────────────────────────────────────────────────────────────────────────────────────


class Encryptor:
    """Encrypts a stream to recipients or a passphrase. The head is the first part of the file."""

    def __init__(self, to: Sequence[str] | Passphrase) -> None:
        self.file_key = os.urandom(16)
        nonce = os.urandom(16)
        self.head = _make_head(self.file_key, to) + nonce
        self._cipher = _payload_cipher(self.file_key, nonce)
        self._counter = 0
        self._rest = b""

    def update(self, data: bytes) -> bytes:
        """Return what can be written so far."""
        missing = CHUNK - len(self._rest)
        if len(data) <= missing:  # a whole chunk is kept: it may be the last
            self._rest += data
            return b""
        sealed = [self._seal(self._rest + data[:missing], b"\x00")]
        view = memoryview(data)[missing:]
        whole = (len(view) - 1) // CHUNK * CHUNK
        sealed += [self._seal(view[at : at + CHUNK], b"\x00") for at in range(0, whole, CHUNK)]
        self._rest = bytes(view[whole:])
        return b"".join(sealed)

    def finish(self) -> bytes:
        return self._seal(self._rest, _LAST)

    def _seal(self, chunk: bytes | memoryview, last: bytes) -> bytes:
        sealed = self._cipher.encrypt(self._counter.to_bytes(11, "big") + last, chunk, None)
        self._counter += 1
        return sealed


def _make_head(file_key: bytes, to: Sequence[str] | Passphrase) -> bytes:
    stanzas = [_to_passphrase(file_key, to)] if isinstance(to, Passphrase) else [_to_one(file_key, each) for each in to]
    if not stanzas:
        raise BadRecipient("A backup needs a recipient or a passphrase.")
    head = _VERSION + b"".join(stanzas) + b"---"
    return head + b" " + _encode(_mac(file_key, head)) + b"\n"


def _to_one(file_key: bytes, recipient: str) -> bytes:
    public = parse_recipient(recipient)
    private = X25519PrivateKey.generate()
    share = private.public_key().public_bytes_raw()
    shared = private.exchange(X25519PublicKey.from_public_bytes(public))
    body = ChaCha20Poly1305(derive(shared, share + public, _X25519)).encrypt(bytes(12), file_key, None)
    return _stanza(b"X25519 " + _encode(share), body)


def _to_passphrase(file_key: bytes, to: Passphrase) -> bytes:
    salt = os.urandom(16)
    body = ChaCha20Poly1305(_stretch(to.text, salt, to.work)).encrypt(bytes(12), file_key, None)
    return _stanza(b"scrypt " + _encode(salt) + b" " + str(to.work).encode(), body)


def _stanza(arguments: bytes, body: bytes) -> bytes:
    return b"-> " + arguments + b"\n" + _encode(body) + b"\n"  # a body of 32 bytes is one short line


# ── Decrypting ──────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True, kw_only=True)
class _Stanza:
    kind: str
    arguments: Sequence[str]
    body: bytes


@dataclass(frozen=True, slots=True)
class FileKey:
    """The key of one file, known to the process that has just written it."""

    key: bytes

    def unwrap(self, kind: str, arguments: Sequence[str], body: bytes) -> bytes | None:  # noqa: ARG002  (as the others)
        return self.key


Unlocks = Identity | Passphrase | FileKey


class Decryptor:
    """Reads the text of an encrypted file. Raises at the first chunk that is damaged, and at a missing end."""

    def __init__(self, source: Readable, find_keys: "Callable[[bool], Sequence[Unlocks]]") -> None:
        """Read the head. `find_keys` gets whether the file has a passphrase, and returns the keys to try."""
        head, mac, stanzas = _read_head(source)
        keys = find_keys(any(each.kind == "scrypt" for each in stanzas))
        file_key = _unwrap(stanzas, keys)
        if not hmac.compare_digest(_mac(file_key, head), mac):
            raise _damaged_head()
        nonce = _read_exactly(source, 16)
        if len(nonce) < 16:
            raise _truncated()
        self._cipher = _payload_cipher(file_key, nonce)
        self._source = source
        self._counter = 0
        self._next = _read_exactly(source, CHUNK + _TAG)
        self._rest = memoryview(b"")
        self._is_over = False

    def read(self, size: int) -> bytes:
        """Return up to `size` bytes; none at the end."""
        while not self._rest and not self._is_over:
            self._rest = memoryview(self._open_next())
        piece, self._rest = self._rest[:size], self._rest[size:]
        return bytes(piece)

    def _open_next(self) -> bytes:
        chunk, self._next = self._next, _read_exactly(self._source, CHUNK + _TAG)
        self._is_over = not self._next
        if not chunk:
            raise _truncated()
        nonce = self._counter.to_bytes(11, "big")
        self._counter += 1
        try:
            return self._cipher.decrypt(nonce + (_LAST if self._is_over else b"\x00"), chunk, None)
        except InvalidTag:
            pass
        if self._is_over and self._has_more(nonce, chunk):
            raise _truncated()
        raise BackupDamaged(
            f"The file is damaged or was cut off about {self._counter * CHUNK // 2**20} MiB after its beginning. "
            "Nothing was changed. Use another copy of it."
        )

    def _has_more(self, nonce: bytes, chunk: bytes) -> bool:
        """Return whether a chunk at the end is sound, but not the last one."""
        try:
            self._cipher.decrypt(nonce + b"\x00", chunk, None)
        except InvalidTag:
            return False
        return True


def _read_head(source: Readable) -> tuple[bytes, bytes, list[_Stanza]]:
    """Return the head up to its MAC, the MAC, and the stanzas."""
    lines = _Lines(source)
    if lines.next() != _VERSION.rstrip():
        raise NotAnAgeFile(
            "This is not a backup of Wakeful: it does not begin like a file in the age format. Files with ASCII armor "
            "are not accepted."
        )
    stanzas: list[_Stanza] = []
    for line in lines:
        if line.startswith(b"--- "):
            return lines.seen[: -len(line) - 1] + b"---", _decode(line[4:].decode("ascii", "replace")), stanzas
        if not line.startswith(b"-> "):
            raise _damaged_head()
        kind, *arguments = line[3:].decode("ascii", "replace").split(" ")
        stanzas.append(_Stanza(kind=kind, arguments=arguments, body=_read_body(lines)))
    raise _damaged_head()


class _Lines:
    """The lines of a head, read a byte at a time: what follows it is not text."""

    def __init__(self, source: Readable) -> None:
        self._source = source
        self.seen = b""

    def next(self) -> bytes:
        line = b""
        while len(line) < _MAX_LINE:
            byte = self._source.read(1)
            if byte == b"\n":
                self.seen += line + b"\n"
                return line
            if not byte:
                break
            line += byte
        if not self.seen:
            return line
        raise _damaged_head()

    def __iter__(self) -> Iterator[bytes]:
        for _ in range(_MAX_HEADER_LINES):
            yield self.next()


def _read_body(lines: _Lines) -> bytes:
    body = b""
    while True:
        line = lines.next()
        body += line
        if len(line) < _LINE:
            return _decode(body.decode("ascii", "replace"))


def _unwrap(stanzas: Sequence[_Stanza], keys: Sequence[Unlocks]) -> bytes:
    for stanza in stanzas:
        for key in keys:
            found = key.unwrap(stanza.kind, stanza.arguments, stanza.body)
            if found is not None:
                return found
    if any(isinstance(key, Passphrase) for key in keys):
        raise WrongBackupKey("The passphrase does not open this backup. Nothing was changed. Try again.")
    raise WrongBackupKey(
        "This backup is encrypted to a recipient, and no identity that was tried opens it. Nothing was changed. "
        "Give the file with the right identity (AGE-SECRET-KEY-1…) with --identity."
    )


# ── Pieces of the format ────────────────────────────────────────────────────────────────────────────────────────────


def _damaged_head() -> BackupDamaged:
    return BackupDamaged("The head of the file is damaged. Nothing was changed. Use another copy of it.")


def _truncated() -> BackupDamaged:
    return BackupDamaged("The file is cut off: its end is missing. Nothing was changed. Use another copy of it.")


def _read_exactly(source: Readable, size: int) -> bytes:
    data = source.read(size)
    while 0 < len(data) < size and (more := source.read(size - len(data))):
        data += more
    return data


def _payload_cipher(file_key: bytes, nonce: bytes) -> ChaCha20Poly1305:
    return ChaCha20Poly1305(derive(file_key, nonce, b"payload"))


def _mac(file_key: bytes, head: bytes) -> bytes:
    return hmac.new(derive(file_key, b"", b"header"), head, sha256).digest()


def derive(key: bytes, salt: bytes, info: bytes) -> bytes:
    """Return a key for one purpose."""
    return HKDF(algorithm=SHA256(), length=32, salt=salt or None, info=info).derive(key)


def _stretch(passphrase: str, salt: bytes, work: int) -> bytes:
    n = 1 << work
    return scrypt(passphrase.encode(), salt=_SCRYPT + salt, n=n, r=8, p=1, maxmem=n * 8 * 128 + 2**25, dklen=32)


def _unseal(key: bytes, body: bytes) -> bytes | None:
    try:
        opened = ChaCha20Poly1305(key).decrypt(bytes(12), body, None)
    except InvalidTag:
        return None
    return opened if len(opened) == 16 else None


def _encode(data: bytes) -> bytes:
    return base64.b64encode(data).rstrip(b"=")


def _decode(text: str) -> bytes:
    try:
        data = base64.b64decode(text + "=" * (-len(text) % 4), validate=True)
    except (binascii.Error, ValueError):
        raise _damaged_head() from None
    if _encode(data).decode() != text:  # bits that say nothing must be zero
        raise _damaged_head()
    return data
