"""Our files in the age format, compared with another implementation."""

import io
import os

import pyrage
import pytest

from wakeful.backup.age import (
    CHUNK,
    BackupDamaged,
    Decryptor,
    Encryptor,
    Identity,
    NotAnAgeFile,
    Passphrase,
    WrongBackupKey,
    read_identities,
)
from wakeful.config.recipients import BadRecipient

OURS = Identity.new()
THEIRS = pyrage.x25519.Identity.from_str(OURS.text)
QUICK = Passphrase("correct horse", work=10)


def encrypt(text, to=(OURS.recipient,)):
    encryptor = Encryptor(to)
    return encryptor.head + encryptor.update(text[:1000]) + encryptor.update(text[1000:]) + encryptor.finish()


def decrypt(data, *keys):
    source = Decryptor(io.BytesIO(data), lambda _: keys or [OURS])
    return b"".join(iter(lambda: source.read(70_000), b""))


@pytest.mark.parametrize("size", [0, 1, CHUNK - 1, CHUNK, CHUNK + 1, 3 * CHUNK, 200_000])
def test_files_are_the_same_for_another_implementation(size):
    text = os.urandom(size)
    assert pyrage.decrypt(encrypt(text, [Identity.new().recipient, OURS.recipient]), [THEIRS]) == text
    assert decrypt(pyrage.encrypt(text, [THEIRS.to_public()])) == text
    assert decrypt(encrypt(text)) == text


def test_a_passphrase_is_the_same_for_another_implementation():
    text = os.urandom(100_000)
    assert pyrage.passphrase.decrypt(encrypt(text, QUICK), QUICK.text) == text
    assert decrypt(encrypt(text, QUICK), QUICK) == text


def test_keys_are_written_as_age_writes_them():
    assert str(THEIRS.to_public()) == OURS.recipient
    assert read_identities(f"# created: today\n{OURS.text}\n") == [OURS]
    mistyped = OURS.recipient[:-1] + ("p" if OURS.recipient.endswith("q") else "q")
    for wrong in ("", "age1", mistyped, OURS.recipient.title(), OURS.text):
        with pytest.raises(BadRecipient, match="wakeful backup key"):
            encrypt(b"", [wrong])


def test_another_key_or_passphrase_is_refused_with_words():
    with pytest.raises(WrongBackupKey, match="--identity"):
        decrypt(encrypt(b"x"), Identity.new())
    with pytest.raises(WrongBackupKey, match="passphrase does not open"):
        decrypt(encrypt(b"x", QUICK), Passphrase("wrong", 10))


def test_every_damaged_byte_is_noticed():
    data = encrypt(os.urandom(300))
    for place in range(len(data)):
        damaged = bytearray(data)
        damaged[place] ^= 1
        with pytest.raises((BackupDamaged, NotAnAgeFile, WrongBackupKey)):
            decrypt(bytes(damaged))


@pytest.mark.parametrize("cut", [1, 17, CHUNK, CHUNK + 16, 2 * CHUNK + 33])
def test_a_file_that_is_cut_off_is_noticed(cut):
    data = encrypt(os.urandom(2 * CHUNK + 100))
    with pytest.raises(BackupDamaged):
        decrypt(data[:-cut])


def test_a_file_cut_between_two_chunks_is_called_cut_off():
    data = encrypt(os.urandom(2 * CHUNK + 100))
    with pytest.raises(BackupDamaged, match="its end is missing"):
        decrypt(data[: -(100 + 16)])


@pytest.mark.parametrize("text", [b"", b"PK\x03\x04", b"-----BEGIN AGE ENCRYPTED FILE-----\n", bytes(5000)])
def test_other_files_are_refused(text):
    with pytest.raises(NotAnAgeFile, match="not a backup"):
        decrypt(text)
