"""The web server inside the network: ``GET /bytes/N`` answers with N bytes.

Runs as a separate process in a host's namespace and imports nothing from ccplay: ``python
webserver.py PORT COUNT`` listens on COUNT ports from PORT on. On stdout it writes ``ready`` once it
accepts connections and, before it sends, the connection of each download: ``DOWNLOAD PEER-PORT``.
"""

from __future__ import annotations

import selectors
import socket
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

_BLOCK = bytes(1 << 17)


class Handler(BaseHTTPRequestHandler):
    """Answers one request: ``/bytes/N?download=NAME`` and optionally ``&cc=ALGORITHM``."""

    protocol_version = "HTTP/1.1"
    """HTTP version in which the client closes the connection, so that all data is acknowledged
    while it is established."""

    def do_GET(self) -> None:
        """Answer with the requested number of bytes."""
        url = urlsplit(self.path)
        query = {name: values[-1] for name, values in parse_qs(url.query).items()}
        try:
            left = int(url.path.removeprefix("/bytes/"))
        except ValueError:
            self.send_error(404, "only /bytes/N exists")
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
        """Write no log: stdout belongs to the lab, and stderr is for errors."""


class DownloadServer(ThreadingHTTPServer):
    """A server with one thread per download, to which an aborted download is not an error."""

    daemon_threads = True

    def handle_error(self, *_: object) -> None:
        """Ignore the error: wget reports why the connection ended."""


def main() -> None:
    """Serve until killed."""
    first, count = map(int, sys.argv[1:])
    with selectors.DefaultSelector() as ready:
        for port in range(first, first + count):
            server = DownloadServer(("0.0.0.0", port), Handler)  # noqa: S104 - the lab's own network
            ready.register(server, selectors.EVENT_READ, server)
        print("ready", flush=True)
        while True:
            for key, _ in ready.select():
                key.data.handle_request()


if __name__ == "__main__":
    main()
