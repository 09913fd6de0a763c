"""The web server inside the network: ``GET /bytes/N`` answers with N bytes.

A process of its own in a host's namespace: ``python webserver.py PORT COUNT`` listens on so many
ports from the first, imports nothing of ccplay. On stdout it says ``ready`` once it takes
connections and, before it sends, which connection that will be: ``DOWNLOAD PEER-PORT``.
"""

from __future__ import annotations

import selectors
import socket
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

_BLOCK = bytes(1 << 17)


class Handler(BaseHTTPRequestHandler):
    """Answers one request: ``/bytes/N?download=NAME`` and, where wanted, ``&cc=ALGORITHM``."""

    protocol_version = "HTTP/1.1"
    """The other side ends the connection, so that all is acknowledged while it is established."""

    def do_GET(self) -> None:
        """Send the bytes."""
        url = urlsplit(self.path)
        query = {name: values[-1] for name, values in parse_qs(url.query).items()}
        try:
            left = int(url.path.removeprefix("/bytes/"))
        except ValueError:
            self.send_error(404, "there is only /bytes/N")
            return
        if "cc" in query:
            self.connection.setsockopt(
                socket.IPPROTO_TCP, socket.TCP_CONGESTION, query["cc"].encode()
            )
        print(query.get("download", ""), self.client_address[1], flush=True)
        self.send_response(200)
        self.send_header("Content-Type", "application/octet-stream")
        self.send_header("Content-Length", str(left))
        self.end_headers()
        while left > 0:
            self.wfile.write(_BLOCK[:left])
            left -= len(_BLOCK)

    def log_message(self, *_: object) -> None:
        """Say nothing: stdout belongs to the lab, and stderr to errors."""


class Server(ThreadingHTTPServer):
    """Takes one thread a download; one that is broken off is no error."""

    daemon_threads = True

    def handle_error(self, *_: object) -> None:
        """Forget the connection: wget knows best why it went."""


def main() -> None:
    """Serve until killed."""
    first, count = map(int, sys.argv[1:])
    with selectors.DefaultSelector() as ready:
        for port in range(first, first + count):
            server = Server(("0.0.0.0", port), Handler)  # noqa: S104 - the lab's own network
            ready.register(server, selectors.EVENT_READ, server)
        print("ready", flush=True)
        while True:
            for key, _ in ready.select():
                key.data.handle_request()


if __name__ == "__main__":
    main()
