"""A server that is not ours."""

import json
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread


@contextmanager
def a_stranger(
    host: str = "127.0.0.1", port: int = 0, answer: object = None, status: int = 200
) -> Iterator[tuple[int, list[str]]]:
    """Yield the port of such a server, and the headers that it was sent. It redirects, unless it has an answer."""
    sent: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            sent.append(str(self.headers))
            self.send_response(301 if answer is None else status)
            self.send_header("Location", "https://elsewhere.example.org/")
            self.end_headers()
            self.wfile.write(b"" if answer is None else json.dumps(answer).encode())

        do_POST = do_GET  # noqa: N815  (the names of http.server)

        def log_message(self, *_: object) -> None:
            pass

    class Stranger(ThreadingHTTPServer):
        address_family = socket.AF_INET6 if ":" in host else socket.AF_INET

    with Stranger((host, port), Handler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_port, sent
        server.shutdown()
