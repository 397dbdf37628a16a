"""`wakeful service …`: run the server as a service of systemd."""

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import typer

from wakeful.cli.nouns import Commands
from wakeful.cli.output import WRONG, echo, fail
from wakeful.cli.target import refuse_remote

# The systemd unit that runs the server: of one user, or of the whole system.


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


app = Commands()

System = Annotated[bool, typer.Option("--system", help="A service of the whole machine; needs root. Else your own.")]
Env = Annotated[
    list[str] | None,
    typer.Option("--env", metavar="NAME=VALUE", help="An environment variable of the server; repeatable. No secrets."),
]
TokenFile = Annotated[
    Path | None, typer.Option(metavar="FILE", help="The owner's token, passed on as a credential of systemd.")
]
KeyFile = Annotated[
    Path | None, typer.Option(metavar="FILE", help="The device key, passed on as a credential of systemd.")
]


@app.callback()
def _stay_here() -> None:
    refuse_remote("`wakeful service` sets up", also_chosen=True)


@app.command()
def show(
    system: System = False, env: Env = None, token_file: TokenFile = None, device_key_file: KeyFile = None
) -> None:
    """Print the unit that `install` would write."""
    echo(_make(system, env, token_file, device_key_file).render(), nl=False)


@app.command()
def install(
    system: System = False,
    env: Env = None,
    token_file: TokenFile = None,
    device_key_file: KeyFile = None,
    no_start: Annotated[bool, typer.Option("--no-start", help="Write the unit, and start nothing.")] = False,
) -> None:
    """Write the unit, start the server now and at every boot. An existing unit is replaced."""
    _refuse_without_root(system)
    unit = _make(system, env, token_file, device_key_file)
    if system:
        _refuse_home(unit.program[0])
    try:
        unit.path.parent.mkdir(parents=True, exist_ok=True)
        unit.path.write_text(unit.render(), encoding="utf-8")
    except OSError as error:
        fail(f"{unit.path} cannot be written: {error.strerror}.")
    echo(f"Wrote {unit.path}.")
    commands = (_systemctl(system, "daemon-reload"), _systemctl(system, "enable", "--now", "wakeful"))
    if no_start or not _has_systemd():
        why = "" if no_start else "systemd does not run here. "
        echo(f"{why}To start it: {' && '.join(map(' '.join, commands))}")
        return
    for command in commands:
        _run(command)
    echo("The server runs, and starts at every boot.")
    echo(f"Its log: journalctl {'' if system else '--user '}-u wakeful -f. A login link: wakeful login")
    if not system:
        echo(f"So that it also runs while you are logged out: sudo loginctl enable-linger {_user_name()}")


@app.command()
def uninstall(system: System = False) -> None:
    """Stop the server and remove the unit. Data and settings stay."""

    _refuse_without_root(system)
    path = ServiceUnit(program=(), is_system=system).path
    if not path.exists():
        fail(f"There is no {path}, so there is nothing to remove.")
    if _has_systemd():
        _run(_systemctl(system, "disable", "--now", "wakeful"))
    path.unlink()
    if _has_systemd():
        _run(_systemctl(system, "daemon-reload"))
    echo(f"Removed {path}. Data and settings are still there.")


def _make(system: bool, env: list[str] | None, token_file: Path | None, device_key_file: Path | None) -> "ServiceUnit":

    variables = {"WAKEFUL_LOG_FORMAT": "json"} | dict(_split(each) for each in env or ())
    files = {"token": token_file, "device_key": device_key_file}
    return ServiceUnit(
        program=(*_find_program(), "serve"),
        is_system=system,
        environment=variables,
        credentials={name: path.absolute() for name, path in files.items() if path is not None},
    )


def _split(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name.isidentifier():
        fail(f"{text!r} is not an environment variable. Write it like WAKEFUL_PORT=8421.", WRONG)
    return name, value


def _find_program() -> tuple[str, ...]:
    """Return the command that runs this installation of Wakeful."""
    script = Path(sys.argv[0])
    if script.name == "wakeful" and (found := shutil.which(str(script))):
        return (str(Path(found).absolute()),)
    return (sys.executable, "-m", "wakeful")


def _refuse_home(program: str) -> None:
    real = Path(program).resolve()
    if any(real.is_relative_to(home) for home in ("/home", "/root")):
        fail(
            f"{real} is in a home directory, which a service of the system cannot read. Install Wakeful elsewhere, for "
            "example with `UV_TOOL_DIR=/opt/wakeful UV_TOOL_BIN_DIR=/usr/local/bin uv tool install …`, and run "
            "`/usr/local/bin/wakeful service install --system`. Or leave --system out: it is then a service of yours."
        )


def _refuse_without_root(system: bool) -> None:
    if system and os.geteuid() != 0:
        fail("A service of the system is set up by root: run it with sudo, or leave --system out.")


def _has_systemd() -> bool:
    return Path("/run/systemd/system").is_dir() and shutil.which("systemctl") is not None


def _systemctl(system: bool, *arguments: str) -> tuple[str, ...]:
    return ("systemctl", *(() if system else ("--user",)), *arguments)


def _run(command: tuple[str, ...]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        fail(f"`{' '.join(command)}` failed: {done.stderr.strip() or done.stdout.strip()}")


def _user_name() -> str:
    import getpass

    return getpass.getuser()
