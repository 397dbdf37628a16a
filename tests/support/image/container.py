"""The image as scripts/try_image.sh builds it, run by runc as Docker would run it with hardened options."""

import json
import os
import shutil
import socket
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import IO, Any

ROOT = Path(__file__).parents[3]
TOOLS = ("buildah", "debootstrap", "runc")
_numbers = count(1)


def missing_tools() -> list[str]:
    """Return the programs that a test of the image needs and this machine lacks."""
    return [*(name for name in TOOLS if shutil.which(name) is None), *(["root"] if os.getuid() else [])]


class Image:
    """A built image: its files and its configuration."""

    def __init__(self, folder: Path) -> None:
        self.files = folder / "rootfs"
        self.config: dict[str, Any] = json.loads((folder / "image.json").read_text(encoding="utf-8"))

    @property
    def health_check(self) -> list[str]:
        kind, *command = self.config["Healthcheck"]["Test"]
        assert kind == "CMD"
        return command


class Container:
    """A running container, and its directories on this machine."""

    def __init__(self, image: Image, folder: Path, *, uid: int, settings: Mapping[str, str]) -> None:
        self._image, self._folder, self._uid = image, folder, uid
        self._name = f"wakeful-test-{os.getpid()}-{next(_numbers)}"
        self.port, self.health_port = free_port(), free_port()
        ports = {"WAKEFUL_PORT": str(self.port), "WAKEFUL_HEALTH_PORT": str(self.health_port)}
        self._environment = [*image.config["Env"], *(f"{name}={value}" for name, value in (settings | ports).items())]
        self.log = folder / "log"
        for name in ("data", "config"):  # as a volume that the image's directory has filled: for the group 0
            (folder / name).mkdir(exist_ok=True)
            os.chown(folder / name, 10001, 0)
            (folder / name).chmod(0o770)

    @contextmanager
    def running(self, *command: str) -> Iterator["subprocess.Popen[bytes]"]:
        """Run the image's command, or another one for its entry point, until the end of the block."""
        bundle = self._folder / "bundle"
        bundle.mkdir(exist_ok=True)
        words = [*self._image.config["Entrypoint"], *(command or self._image.config["Cmd"])]
        (bundle / "config.json").write_text(json.dumps(self._specify(words)))
        with self.log.open("ab") as log:
            self._process = process = self._start(log, bundle)
        try:
            yield process
        finally:
            self._runc("delete", "--force", self._name)
            process.wait(30)

    def signal(self, name: str) -> None:
        """Send a signal to the container, as `docker stop` and `docker kill` do."""
        done = self._runc("kill", self._name, name)
        assert done.returncode == 0, done.stderr

    def execute(self, *command: str) -> subprocess.CompletedProcess[str]:
        """Run a command in the container, as `docker exec` does."""
        return self._runc("exec", self._name, *command)

    def check_health(self) -> subprocess.CompletedProcess[str]:
        return self.execute(*self._image.health_check)

    @property
    def is_running(self) -> bool:
        return self._process.poll() is None

    def said(self) -> str:
        return self.log.read_text(encoding="utf-8")

    def _start(self, log: IO[bytes], bundle: Path) -> "subprocess.Popen[bytes]":
        return subprocess.Popen(
            [*self._program(), "run", "--bundle", bundle, self._name], stdin=subprocess.DEVNULL, stdout=log, stderr=log
        )

    def _runc(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*self._program(), *arguments], capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=60
        )

    def _program(self) -> list[str]:
        return ["runc", "--root", str(self._folder / "state")]

    def _specify(self, words: Sequence[str]) -> dict[str, Any]:
        """Return the runtime specification of `docker run --read-only --tmpfs /tmp --user UID --cap-drop ALL …`."""
        quiet = ["nosuid", "nodev"]
        mounts = [
            {"destination": "/proc", "type": "proc", "source": "proc"},
            {"destination": "/dev", "type": "tmpfs", "source": "tmpfs", "options": ["nosuid", "mode=755"]},
            {"destination": "/tmp", "type": "tmpfs", "source": "tmpfs", "options": [*quiet, "mode=1777"]},
            *(self._volume(name) for name in ("data", "config")),
        ]
        return {
            "ociVersion": "1.0.2",
            "process": {
                "user": {"uid": self._uid, "gid": 0},
                "args": list(words),
                "env": self._environment,
                "cwd": self._image.config["WorkingDir"],
                "noNewPrivileges": True,
            },
            "root": {"path": str(self._image.files), "readonly": True},
            "mounts": mounts,
            "linux": {"namespaces": [{"type": kind} for kind in ("pid", "ipc", "uts", "mount")]},
        }

    def _volume(self, name: str) -> dict[str, Any]:
        return {
            "destination": f"/{name}",
            "type": "bind",
            "source": str(self._folder / name),
            "options": ["bind", "rw"],
        }


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])
