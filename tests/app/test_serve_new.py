"""`wakeful serve --new`, and the recovery key, as people meet them: real processes and a real terminal."""

import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import pytest

from used_data import Place

WAKEFUL = Path(sys.executable).parent / "wakeful"
RECOVERY_KEY = re.compile(r"Recovery key.*: (?:[A-Z2-7]{4}-){13}[A-Z2-7]{4}")


@pytest.fixture
def place(tmp_path):
    """A directory that has been used, whose store was emptied."""
    place = Place(tmp_path)
    with place.served():
        pass
    os.truncate(place.data / "wakeful.sqlite", 0)
    return place


def test_a_lost_store_is_refused_and_begun_anew_with_a_flag(place):
    assert "serve --new" in place.refused()
    refused = place.refused("--new")
    assert "--yes" in refused
    assert list(place.data.glob("set-aside-*")) == []
    with place.served("--new", "--yes") as running:
        [folder] = place.data.glob("set-aside-*")
        assert str(folder) in running.said
        assert "wakeful.sqlite (0 bytes)" in running.said
        assert {"wakeful.sqlite", "directory.json"} <= {each.name for each in folder.iterdir()}
    assert "has content, so --new is refused" in place.refused("--new", "--yes")


def test_a_person_at_a_terminal_is_asked(place):
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [WAKEFUL, "serve", "--port", "0", "--new"],
        env=place.environment,
        stdin=theirs,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    os.close(theirs)
    os.write(ours, b"n\n")
    said, errors = process.communicate(timeout=60)
    os.close(ours)
    assert process.returncode == 1
    assert "start over? [y/N]" in said
    assert "Nothing was changed." in errors
    assert list(place.data.glob("set-aside-*")) == []


def test_the_recovery_key_is_shown_by_the_first_start_that_succeeds(tmp_path):
    place = Place(tmp_path)
    place.data.mkdir()
    in_the_way = place.data / "agents"  # it fails once the key and the store are made
    in_the_way.touch()
    assert "Cannot write in the data directory" in place.refused()
    assert (place.config / "device.key").exists()
    in_the_way.unlink()
    for is_shown in (True, False):
        with place.served() as running:
            pass
        assert bool(RECOVERY_KEY.search(running.said)) == is_shown
        assert not RECOVERY_KEY.search(place.log.read_text())
