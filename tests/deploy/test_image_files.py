"""The Dockerfile, the compose file and the health check fit the settings and each other."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from wakeful.config.settings import ConfigError, Settings, load_settings

pytestmark = pytest.mark.image

ROOT = Path(__file__).parents[2]
DOCKERFILE = (ROOT / "Dockerfile").read_text(encoding="utf-8")
COMPOSE = yaml.safe_load((ROOT / "deploy/compose.yaml").read_text(encoding="utf-8"))
# The environment that the image sets.
IMAGE = dict(re.findall(r"^(?:ENV |    )([A-Z_]+)=(\S+)(?: \\)?$", DOCKERFILE, re.MULTILINE))


def as_composed(service: str, **given: str) -> dict[str, str]:
    """Return the environment of a service, with variables replaced as compose does: `${NAME:-default}`."""
    environment = COMPOSE["services"][service]["environment"]
    return {
        name: re.sub(r"\$\{(\w+):-([^}]*)\}", lambda found: given.get(found[1]) or found[2], value)
        for name, value in environment.items()
    }


def test_the_image_sets_only_settings_that_exist():
    names = {name.removeprefix("WAKEFUL_").lower() for name in IMAGE if name.startswith("WAKEFUL_")}
    assert {"data_dir", "config_dir", "host", "port", "health_port"} <= names <= Settings.model_fields.keys()


def test_the_image_alone_is_refused_with_what_to_set():
    with pytest.raises(ConfigError, match=r"WAKEFUL_ALLOWED_HOSTS=.*container.*WAKEFUL_ALLOWED_HOSTS=localhost"):
        load_settings(IMAGE)


def test_compose_without_any_variable_starts_for_this_machine():
    settings = load_settings(IMAGE | as_composed("wakeful"))
    assert (settings.allowed_hosts, settings.public_address) == (("localhost",), "http://localhost:8420")
    assert (settings.database_url, settings.model) == (None, "demo")


def test_compose_passes_on_what_is_given():
    given = {
        "WAKEFUL_ALLOWED_HOSTS": "wakeful.example.org",
        "WAKEFUL_PUBLIC_URL": "https://wakeful.example.org",
        "WAKEFUL_DATABASE_URL": "postgresql://wakeful:secret@postgres:5432/wakeful",
    }
    settings = load_settings(IMAGE | as_composed("wakeful", **given))
    assert settings.public_address == "https://wakeful.example.org"
    assert settings.database_url is not None


def test_compose_hardens_the_container_and_keeps_its_volumes():
    server = COMPOSE["services"]["wakeful"]
    assert server["read_only"] is True
    assert server["cap_drop"] == ["ALL"]
    assert [each.split(":")[1] for each in server["volumes"]] == ["/data", "/config"]
    assert all(port.startswith("127.0.0.1:") for port in server["ports"])
    assert COMPOSE["services"]["postgres"]["profiles"] == ["postgres"]


def test_every_file_that_is_copied_is_sent_to_the_build():
    ignored = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    sent = {line.removeprefix("!") for line in ignored if line.startswith("!")}
    copied = {
        word for line in re.findall(r"^COPY (?!--from)(.+) \S+$", DOCKERFILE, re.MULTILINE) for word in line.split()
    }
    assert {path for path in copied if not any(path == each or path.startswith(f"{each}/") for each in sent)} == set()
    assert [path for path in copied if not (ROOT / path).exists()] == []


def test_the_health_check_says_that_nothing_answers():
    done = subprocess.run(
        [sys.executable, "-I", ROOT / "deploy/image/healthcheck.py"],
        env={"WAKEFUL_HEALTH_PORT": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, "does not answer on port 1" in done.stderr) == (1, True)
