"""The keys of agents' files."""

from pathlib import Path

import pytest

from wakeful.agentdb.errors import DatabaseLocked
from wakeful.agentdb.keys import AgentKeys, Vault
from wakeful.core.device_key import (
    BadRecoveryKey,
    DeviceKeyUnusable,
    from_recovery_key,
    load_device_key,
    restore_device_key,
    to_recovery_key,
)

DEVICE = bytes(range(32))


@pytest.fixture
def vault(tmp_path):
    return Vault(lambda agent_id: tmp_path / agent_id, lambda: DEVICE)


def vault_with(tmp_path, device_key):
    return Vault(lambda agent_id: tmp_path / agent_id, device_key)


def test_every_agent_has_a_random_key_that_stays(vault):
    one, two = vault.make("one"), vault.make("two")
    assert one.current != two.current
    assert vault.make("one") == vault.open("one") == one


def test_the_key_is_on_the_disk_only_wrapped_and_for_its_owner_alone(vault, tmp_path):
    key = vault.make("one").current
    path = tmp_path / "one" / "db.key"
    assert key.hex() not in path.read_text()
    assert key not in path.read_bytes()
    assert path.stat().st_mode & 0o077 == 0


def test_another_device_key_opens_nothing_and_changes_nothing(vault, tmp_path):
    vault.make("one")
    before = (tmp_path / "one" / "db.key").read_bytes()
    with pytest.raises(DatabaseLocked, match="not the one it was made with"):
        vault_with(tmp_path, lambda: bytes(32)).open("one")
    assert (tmp_path / "one" / "db.key").read_bytes() == before


def test_a_key_file_of_another_agent_does_not_fit(vault, tmp_path):
    vault.make("one")
    vault.make("two")
    (tmp_path / "one" / "db.key").write_bytes((tmp_path / "two" / "db.key").read_bytes())
    with pytest.raises(DatabaseLocked):
        vault.open("one")


@pytest.mark.parametrize("content", [None, b"", b"[]", b"{}", b'{"key": "zz"}', b'{"key": ""}', b'{"key": "00"}'])
def test_a_missing_or_broken_key_file_is_locked_not_replaced(vault, tmp_path, content):
    folder = tmp_path / "one"
    folder.mkdir()
    if content is not None:
        (folder / "db.key").write_bytes(content)
    with pytest.raises(DatabaseLocked, match="locked"):
        vault.open("one")
    assert [path.name for path in folder.iterdir()] == ([] if content is None else ["db.key"])


def test_an_unusable_device_key_locks(tmp_path):
    def unusable():
        raise DeviceKeyUnusable("The device key cannot be read.")

    Vault(lambda agent_id: tmp_path / agent_id, lambda: DEVICE).make("one")
    with pytest.raises(DatabaseLocked, match="The device key cannot be read"):
        vault_with(tmp_path, unusable).open("one")


def test_a_rotation_keeps_both_keys_until_it_is_done(vault):
    old = vault.make("one").current
    vault.save("one", AgentKeys(current=bytes(32), previous=old))
    assert vault.open("one") == AgentKeys(current=bytes(32), previous=old)
    vault.save("one", AgentKeys(current=bytes(32)))
    assert vault.open("one").previous is None


def test_keys_can_be_wrapped_with_another_device_key(vault, tmp_path):
    keys = vault.make("one")
    new = vault_with(tmp_path, lambda: bytes(32))
    new.rewrap("one", DEVICE)
    assert new.open("one") == keys
    with pytest.raises(DatabaseLocked):
        vault_with(tmp_path, lambda: DEVICE).open("one")


def test_erasing_leaves_neither_key_nor_files(vault, tmp_path):
    vault.make("one")
    Path(vault.database_of("one")).write_bytes(b"x")
    (tmp_path / "one" / "workspace").mkdir()
    vault.erase("one")
    assert [path.name for path in (tmp_path / "one").iterdir()] == ["workspace"]
    with pytest.raises(DatabaseLocked):
        vault.open("one")
    vault.erase("nobody")


def test_a_recovery_key_brings_the_device_key_back(tmp_path):
    key = load_device_key(tmp_path)
    written = to_recovery_key(key)
    (tmp_path / "device.key").unlink()
    restore_device_key(tmp_path, f" {written.lower().replace('-', ' ')} ")
    assert load_device_key(tmp_path) == key
    assert (tmp_path / "device.key").stat().st_mode & 0o077 == 0


def test_restoring_moves_a_key_that_is_there_aside(tmp_path):
    first = load_device_key(tmp_path)
    restore_device_key(tmp_path, to_recovery_key(DEVICE))
    assert load_device_key(tmp_path) == DEVICE
    [aside] = tmp_path.glob("device.key.*.old")
    assert aside.read_text().strip() == first.hex()


@pytest.mark.parametrize("slip", ["", "AAAA", "first two swapped", "one letter less", "?"])
def test_a_slip_of_the_pen_is_noticed(slip):
    text = to_recovery_key(DEVICE)
    text = {
        "first two swapped": text[1] + text[0] + text[2:] if text[0] != text[1] else "B" + text[1:],
        "one letter less": text[:-1],
    }.get(slip, slip)
    if text == to_recovery_key(DEVICE):
        text = "B" + text[1:]
    with pytest.raises(BadRecoveryKey):
        from_recovery_key(text)
