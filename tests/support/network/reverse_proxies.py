"""Real reverse proxies with TLS: nginx and Caddy, configured as in docs/operate/reverse-proxy.md."""

import asyncio
import contextlib
import re
import shutil
import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from network.tls_proxy import write_certificate

HOST = "wakeful.example.org"
GUIDE = Path(__file__).parents[3] / "docs" / "operate" / "reverse-proxy.md"
# Around the part of the configuration that the guide shows.
NGINX = """
daemon off;
pid {folder}/nginx.pid;
error_log {folder}/error.log;
events {{}}
http {{
  access_log off;
  client_body_temp_path {folder}/body;
  proxy_temp_path {folder}/proxy;
  fastcgi_temp_path {folder}/fastcgi;
  uwsgi_temp_path {folder}/uwsgi;
  scgi_temp_path {folder}/scgi;
  {shown}
}}
"""
CADDY = """
{{
  admin off
  auto_https off
}}
{shown}
"""


def shown_configuration(name: str, port: int, certificate: Path, upstream: int, path: str) -> str:
    """Return the configuration in the guide, with the ports and files of a test."""
    language = {"nginx": "nginx", "caddy": "caddyfile"}[name]
    found = re.search(rf"^```{language}\n(.*?)^```$", GUIDE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    assert found is not None
    text = re.sub(r"/etc/ssl/wakeful/\w+\.pem", str(certificate), found[1]).replace(
        "127.0.0.1:8420", f"127.0.0.1:{upstream}"
    )
    if name == "nginx":
        return text.replace("listen 443 ssl", f"listen 127.0.0.1:{port} ssl").replace("location /", f"location {path}/")
    text = text.replace(f"{HOST} {{", f"https://{HOST}:{port} {{\n  bind 127.0.0.1")
    return text.replace("reverse_proxy ", f"reverse_proxy {path}/* ")


def find_program(name: str) -> str | None:
    return shutil.which(name, path="/usr/bin:/usr/sbin:/usr/local/bin")


@asynccontextmanager
async def running_proxy(name: str, upstream: int, folder: Path, path: str = "") -> AsyncIterator["Proxy"]:
    """Run nginx or Caddy with a certificate for HOST in front of a port."""
    certificate = write_certificate(HOST, folder / "proxy.pem")
    port = _free_port()
    shown = shown_configuration(name, port, certificate, upstream, path)
    text = (NGINX if name == "nginx" else CADDY).format(folder=folder, shown=shown)
    config = folder / ("nginx.conf" if name == "nginx" else "Caddyfile")
    config.write_text(text)
    arguments = ["-c", str(config), "-p", str(folder), "-e", str(folder / "error.log")]
    if name == "caddy":
        arguments = ["run", "--config", str(config), "--adapter", "caddyfile"]
    program = find_program(name)
    assert program is not None
    log = folder / "output.log"
    with log.open("wb") as output:
        process = await asyncio.create_subprocess_exec(
            program, *arguments, stdout=output, stderr=output, env={"HOME": str(folder)}
        )
    try:
        await _listens(port, process, log)
        yield Proxy(port, certificate)
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.terminate()
        await process.wait()


class Proxy:
    """A running proxy, and how a client trusts it."""

    def __init__(self, port: int, certificate: Path) -> None:
        self.port = port
        self.address = f"https://{HOST}:{port}"
        self.context = ssl.create_default_context(cafile=certificate)


async def _listens(port: int, process: asyncio.subprocess.Process, log: Path) -> None:
    for _ in range(400):
        if process.returncode is not None:
            raise AssertionError(_read(log))
        with contextlib.suppress(OSError):
            _, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.close()
            return
        await asyncio.sleep(0.05)
    raise AssertionError(f"nothing listens on {port}: {_read(log)}")


def _read(log: Path) -> str:
    return log.read_text(encoding="utf-8", errors="replace")


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as found:
        return found.getsockname()[1]
