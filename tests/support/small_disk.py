"""A small disk, and a way to fill it. Only root can mount one."""

import os
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def small_disk(size: str) -> Iterator[Path]:
    """Mount a small disk, for PostgreSQL's user to write on."""
    if os.geteuid() != 0:
        pytest.skip("only root can mount a small disk here")
    # Not below pytest's own folder, which is closed to the user that the server runs as.
    with tempfile.TemporaryDirectory(prefix="wakeful-disk-") as folder:
        Path(folder).chmod(0o755)
        disk = Path(folder) / "disk"
        disk.mkdir()
        mounted = subprocess.run(
            ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", disk], capture_output=True, check=False
        )
        if mounted.returncode != 0:
            pytest.skip(f"no disk can be mounted here: {mounted.stderr.decode().strip()}")
        try:
            yield disk
        finally:
            subprocess.run(["umount", "--lazy", disk], check=True)


def fill(ballast: Path) -> None:
    """Leave not a byte free."""
    with ballast.open("wb", buffering=0) as file:
        for size in (65536, 4096, 1):
            try:
                while True:
                    file.write(bytes(size))
            except OSError:
                continue
