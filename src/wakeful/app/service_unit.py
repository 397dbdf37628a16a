"""The systemd unit that runs the server: of one user, or of the whole system."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

NAME = "wakeful.service"
SYSTEM_FOLDER = Path("/etc/systemd/system")
SYSTEM_STATE = Path("/var/lib/wakeful")  # of StateDirectory=wakeful
WATCHDOG_SECONDS = 120

# Without limits on namespaces, system calls or executable memory: commands of the toolset `shell` are confined with
# namespaces and seccomp, and MCP servers may be programs with a just-in-time compiler.
_FOR_EVERYONE = ("NoNewPrivileges=yes", "LockPersonality=yes", "RestrictRealtime=yes", "UMask=0077")
_FOR_THE_SYSTEM = (
    "DynamicUser=yes",
    "StateDirectory=wakeful wakeful/data wakeful/config",
    "StateDirectoryMode=0700",
    "ProtectSystem=strict",
    "ProtectHome=yes",
    "PrivateTmp=yes",
    "PrivateDevices=yes",
    "ProtectClock=yes",
    "ProtectHostname=yes",
    "ProtectControlGroups=yes",
    "ProtectKernelLogs=yes",
    "ProtectKernelModules=yes",
    "RestrictSUIDSGID=yes",
    "CapabilityBoundingSet=",
    "AmbientCapabilities=",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceUnit:
    """A unit, before it is written."""

    program: Sequence[str]  # the command that starts the server
    is_system: bool = False
    environment: Mapping[str, str] = field(default_factory=dict[str, str])
    credentials: Mapping[str, Path] = field(default_factory=dict[str, Path])  # setting → file that only root can read

    @property
    def path(self) -> Path:
        return (SYSTEM_FOLDER if self.is_system else user_folder()) / NAME

    def render(self) -> str:
        """Return the text of the unit."""
        lines = [
            "# Written by `wakeful service install`. `systemctl edit wakeful` adds lines that an upgrade keeps.",
            "[Unit]",
            "Description=Wakeful, a server for agents that set their own alarm",
            *(("After=network-online.target", "Wants=network-online.target") if self.is_system else ()),
            "StartLimitIntervalSec=300",
            "StartLimitBurst=10",
            "",
            "[Service]",
            "Type=notify",
            "NotifyAccess=main",
            f"ExecStart={' '.join(_quote(word) for word in self._command())}",
            "Restart=on-failure",
            "RestartSec=5",
            f"WatchdogSec={WATCHDOG_SECONDS}",
            "TimeoutStopSec=30",
            "KillMode=mixed",
            *_FOR_EVERYONE,
            *(_FOR_THE_SYSTEM if self.is_system else ()),
            *self._variables(),
            "",
            "[Install]",
            f"WantedBy={'multi-user.target' if self.is_system else 'default.target'}",
        ]
        return "\n".join(lines) + "\n"

    def _command(self) -> list[str]:
        # Variables are replaced in the arguments, but not in the program's own path.
        return [*self.program[:1], *(word.replace("$", "$$") for word in self.program[1:])]

    def _variables(self) -> list[str]:
        given = dict(self.environment)
        if self.is_system:
            folders = {"WAKEFUL_DATA_DIR": f"{SYSTEM_STATE}/data", "WAKEFUL_CONFIG_DIR": f"{SYSTEM_STATE}/config"}
            given = {"HOME": str(SYSTEM_STATE)} | folders | given
        lines = [f"Environment={_quote(f'{name}={value}')}" for name, value in given.items()]
        for setting, path in self.credentials.items():
            lines.append(f"LoadCredential={setting}:{path}")
            lines.append(f"Environment=WAKEFUL_{setting.upper()}_FILE=%d/{setting}")
        return lines


def user_folder() -> Path:
    """Return the folder of a user's own units."""
    home = os.environ.get("XDG_CONFIG_HOME", "").strip()
    return (Path(home) if home else Path.home() / ".config") / "systemd" / "user"


def _quote(text: str) -> str:
    """Quote a word for a unit file, where % has a meaning of its own."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%")
    return f'"{escaped}"' if escaped != text or not text or any(letter.isspace() for letter in text) else text
