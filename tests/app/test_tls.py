"""A server that ends TLS itself, and its port for probes."""

import asyncio
import contextlib
import socket
import ssl
from dataclasses import replace

import httpx
import pytest

from live_server import running_server
from network.tls_proxy import write_certificate
from wakeful.app.listening import Certificate
from wakeful.cli.server import open_connection
from wakeful.cli.target import Target
from wakeful.config.settings import ConfigError, Settings

HOST = "wakeful.example.org"


@pytest.fixture
def settings(tmp_path):
    certificate = write_certificate(HOST, tmp_path / "tls.pem")
    return {
        "data_dir": tmp_path / "data",
        "config_dir": tmp_path / "config",
        "allowed_hosts": [HOST],
        "tls_certificate": certificate,
        "tls_key": certificate,
    }


def shown_certificate(port):
    """Return the certificate that the server shows, in PEM."""
    return ssl.get_server_certificate(("127.0.0.1", port))


async def test_it_speaks_tls_and_commands_on_its_machine_trust_its_own_certificate(settings):
    async with running_server(settings) as server:
        assert server.address.startswith("https://")
        assert (await server.rest.get("/me")).json()["user"]["name"] == "Owner"
        target = Target(
            url=server.address,
            token=server.token,
            token_from="",
            named_by="",
            certificate=settings["tls_certificate"],
            is_local=True,
        )
        assert await asyncio.to_thread(ask_health, target) == 200
        other = write_certificate(HOST, settings["data_dir"] / "other.pem")
        with pytest.raises(ssl.SSLCertVerificationError):
            await asyncio.to_thread(ask_health, replace(target, certificate=other))


def ask_health(target):
    with contextlib.closing(open_connection(target)) as connection:
        connection.request("GET", "/healthz")
        return connection.getresponse().status


async def test_a_renewed_certificate_is_shown_and_a_broken_one_is_not(settings, caplog):
    path = settings["tls_certificate"]
    certificate = Certificate(path, path)
    listener = await asyncio.start_server(
        lambda _reader, writer: writer.close(), "127.0.0.1", 0, ssl=certificate.context
    )
    port = listener.sockets[0].getsockname()[1]
    first = await asyncio.to_thread(shown_certificate, port)
    write_certificate("renewed.example.org", path)
    certificate.look()
    second = await asyncio.to_thread(shown_certificate, port)
    assert second != first
    path.write_text("broken")
    certificate.look()
    assert await asyncio.to_thread(shown_certificate, port) == second
    assert "the old one stays" in caplog.text
    listener.close()


@pytest.mark.parametrize(("text", "told"), [("no certificate", "pem lib"), (None, "no such file or directory")])
def test_a_certificate_that_cannot_be_used_is_refused_at_the_start(settings, text, told):
    settings["tls_certificate"].write_text(text) if text else settings["tls_certificate"].unlink()
    with pytest.raises(ConfigError, match=told):
        Certificate.of(Settings.model_validate(settings))


async def test_the_port_for_probes_answers_them_alone(settings):
    with socket.create_server(("127.0.0.1", 0)) as found:
        port = found.getsockname()[1]
    async with running_server(settings | {"health_port": port}), httpx.AsyncClient() as probe:
        at = f"http://127.0.0.1:{port}"
        # A balancer names the machine by whatever address it knows.
        assert (await probe.get(f"{at}/readyz", headers={"Host": "10.1.2.3"})).json() == {"ok": True}
        assert (await probe.get(f"{at}/healthz")).json() == {"ok": True}
        assert (await probe.get(f"{at}/agents")).status_code == 404
