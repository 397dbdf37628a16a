"""The tar file in a backup: what is refused, and what the manifest finds."""

import io
import json
import tarfile
from hashlib import sha256

import pytest

from wakeful.backup.age import BackupDamaged
from wakeful.backup.archive import (
    FORMAT,
    HEAD,
    MANIFEST,
    ArchiveReader,
    ArchiveWriter,
    BackupIsNewer,
    Entry,
    Extraction,
    Head,
    UnfitBackup,
)

A_HEAD = Head(
    made_at="2026-01-01T00:00:00+00:00",
    version="1.0",
    store="embedded",
    schema=1,
    device_key="f",
    is_store_encrypted=True,
)


def made(*members, manifest=None, head=None):
    """Return a backup with members that another program has written."""
    file, entries = io.BytesIO(), {}
    with tarfile.open(fileobj=file, mode="w", format=tarfile.PAX_FORMAT) as tar:
        add(tar, HEAD, json.dumps(head or vars_of(A_HEAD)).encode())
        for member, data in members:
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))
            entries[member.name] = (member.size, sha256(data or member.linkname.encode()).hexdigest())
        said = {"entries": entries if manifest is None else manifest, "left_out": [], "changed": []}
        add(tar, MANIFEST, json.dumps(said).encode())
    return file.getvalue()


def vars_of(head):
    return {name: getattr(head, name) for name in head.__dataclass_fields__}


def add(tar, name, data):
    info = tarfile.TarInfo(name)
    info.size = len(data)
    tar.addfile(info, io.BytesIO(data))


def member(name, kind=tarfile.REGTYPE, target=""):
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, target
    return info


def read(data, root=None):
    reader = ArchiveReader(io.BytesIO(data))
    extraction = None if root is None else Extraction(root)
    for entry, pieces in reader.entries():
        if extraction is not None:
            extraction.add(entry.name, entry, pieces)
    return reader


def test_what_was_written_is_read(tmp_path):
    archive = ArchiveWriter(bytes(32))
    odd = "agents/a/workspace/n\udcff\udcfe"  # a name that is not UTF-8
    data = archive.head(A_HEAD)
    data += archive.small(Entry(name="agents/a/workspace", kind="folder", mode=0o500))
    data += archive.small(Entry(name=odd, mode=0o751), b"odd")
    data += archive.small(Entry(name="agents/a/workspace/link", kind="link", target="/etc/passwd"))
    data += b"".join(archive.file(Entry(name="agents/a/big", size=3_000_000), iter([b"x" * 2_000_000])))
    read(data + archive.finish(), tmp_path)
    assert (tmp_path / odd).read_bytes() == b"odd"
    assert (tmp_path / odd).stat().st_mode & 0o777 == 0o751
    assert (tmp_path / "agents/a/workspace/link").readlink().as_posix() == "/etc/passwd"
    assert (tmp_path / "agents/a/big").read_bytes() == b"x" * 2_000_000 + bytes(1_000_000)
    assert archive.changed == ["agents/a/big"]


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        pytest.param(member("/etc/cron.d/x"), "absolute", id="absolute"),
        pytest.param(member("agents/../../x"), "leads elsewhere", id="dots"),
        pytest.param(member("agents//x"), "leads elsewhere", id="empty"),
        pytest.param(member("agents/./x"), "leads elsewhere", id="dot"),
        pytest.param(member("etc/x"), "no such folder", id="another folder"),
        pytest.param(member("agents/x", tarfile.LNKTYPE, "agents/a/db.key"), "hard link", id="hard link"),
        pytest.param(member("agents/x/"), "leads elsewhere", id="slash at the end"),
        pytest.param(member("agents/x/workspace/", tarfile.SYMTYPE, "/etc"), "leads elsewhere", id="link with a slash"),
        pytest.param(member("agents/x/workspace", tarfile.SYMTYPE, "/etc"), "outside a workspace", id="link"),
        pytest.param(member("agents/x/workspace/y", tarfile.LNKTYPE, "agents/a"), "hard link", id="hard link inside"),
        pytest.param(member("agents/x", tarfile.CHRTYPE), "device", id="device"),
        pytest.param(member("agents/x", tarfile.BLKTYPE), "device", id="disk"),
        pytest.param(member("agents/x", tarfile.FIFOTYPE), "device", id="fifo"),
    ],
)
def test_members_that_lead_elsewhere_are_refused(bad, words):
    with pytest.raises(UnfitBackup, match=words):
        read(made((bad, b"")))


def test_nothing_is_written_through_a_link(tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    (tmp_path / "root").mkdir()
    link = member("agents/a/workspace/link", tarfile.SYMTYPE, str(outside))
    with pytest.raises(UnfitBackup, match="through a link"):
        read(made((link, b""), (member("agents/a/workspace/link/x"), b"bad")), tmp_path / "root")
    assert not any(outside.iterdir())


def test_a_member_twice_is_refused():
    with pytest.raises(UnfitBackup, match="twice"):
        read(made((member("agents/x"), b"a"), (member("agents/x"), b"b")))


def test_a_size_beyond_the_manifest_is_refused():
    with pytest.raises(UnfitBackup, match="has 3 bytes, and the manifest says 2"):
        read(made((member("agents/x"), b"abc"), manifest={"agents/x": [2, "0"]}))


def test_what_is_not_as_the_manifest_says_is_refused():
    with pytest.raises(BackupDamaged, match="not as the manifest"):
        read(made((member("agents/x"), b"abc"), manifest={"agents/x": [3, "0"]}))
    with pytest.raises(BackupDamaged, match="missing"):
        read(made(manifest={"agents/x": [3, "0"]}))
    with pytest.raises(UnfitBackup, match="does not have it"):
        read(made((member("agents/x"), b"abc"), manifest={}))


def test_a_stream_that_was_broken_off_is_noticed():
    whole = made((member("agents/x"), b"abc" * 1000))
    for size in range(512, len(whole.rstrip(b"\0")) - 612, 512):
        with pytest.raises((BackupDamaged, UnfitBackup)):
            read(whole[: size + 100])


def test_newer_and_foreign_files_are_refused():
    with pytest.raises(BackupIsNewer, match=f"format {FORMAT + 1}"):
        read(made(head=vars_of(A_HEAD) | {"format": FORMAT + 1}))
    with pytest.raises(UnfitBackup, match="not a backup of Wakeful"):
        read(made(head={"some": "thing"}))
    other = io.BytesIO()
    with tarfile.open(fileobj=other, mode="w") as tar:
        add(tar, "hello.txt", b"hello")
    for data in (other.getvalue(), b"no tar file", bytes(10_240), b""):
        with pytest.raises(UnfitBackup, match="not a backup of Wakeful"):
            read(data)
