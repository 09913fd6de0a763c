"""A download: wget(1) on one host, fetching from a web server on another."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlencode

from msgspec.structs import replace

from ccplay.errors import CommandError
from ccplay.lab.netns import Namespace
from ccplay.lab.paths import STREAMS, Packets
from ccplay.lab.traffic import congestion
from ccplay.lab.traffic.gate import GateEntry
from ccplay.lab.traffic.program import WEB, Hold, Program, script_argv
from ccplay.lab.traffic.site import Connected, Site
from ccplay.traffic.download import DownloadEnded, DownloadProgress, DownloadStarted, StartDownload

PROGRESS_INTERVAL_S = 0.1
"""Shortest time between two reports of progress, in seconds."""

_SAVED = re.compile(r"\(([\d.]+) ([KMGT]?)B/s\) - .* saved \[(\d+)")
_SCALE = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


def wget_argv(server: str, size: int, download: str, cc: str | None) -> list[str]:
    """Return the command line that fetches ``size`` bytes from a server and discards them."""
    query = urlencode({"download": download} | ({"cc": cc} if cc else {}))
    url = f"http://{server}/bytes/{size}?{query}"
    options = ["--no-config", "--no-proxy", "--no-hsts", "--tries=1", "--progress=dot:giga"]
    return ["wget", *options, "--output-document=/dev/null", url]


def read_result(text: str) -> tuple[int, float] | None:
    """Return bytes and seconds from wget's line about a complete download, else None.

    The line gives the rate to three digits, which is more precise than its time.
    """
    match = _SAVED.search(text)
    if match is None:
        return None
    size, rate = int(match[3]), float(match[1]) * _SCALE[match[2]]
    return size, (size / rate if rate else 0.0)


class WebServer:
    """The web server of one host: reports which connection serves which download."""

    def __init__(self, program: Program, on_request: Callable[[str, int], None]) -> None:
        self._program = program
        self._on_request = on_request
        self._reading = asyncio.create_task(self._read())

    @classmethod
    async def start(cls, namespace: Namespace, on_request: Callable[[str, int], None]) -> WebServer:
        """Start the server; ``on_request`` receives a download's name and wget's TCP port.

        Raises ``LabError`` with the server's message if it does not start.
        """
        script = Path(__file__).with_name("webserver.py")
        program = await Program.start_server(
            namespace,
            script_argv(script, str(WEB.start), str(len(WEB))),
            script.stem,
            what=f"host {namespace.name}: web server",
        )
        return cls(program, on_request)

    @property
    def pid(self) -> int:
        """PID of the process that holds the sending sockets."""
        return self._program.pid

    @property
    def ended(self) -> bool:
        """Whether the server has died."""
        return self._program.ended

    async def stop(self) -> None:
        """End the server."""
        await self._program.stop()
        await self._reading

    async def _read(self) -> None:
        async for line in self._program.lines():
            download, _, port = line.rpartition(" ")
            self._on_request(download, int(port))


class WebServers:
    """The web servers of a lab, one in each host that downloads are fetched from."""

    def __init__(self, site: Site) -> None:
        """Start empty; they end with the lab."""
        self._namespace = site.namespace
        self._servers: dict[str, WebServer] = {}
        self._one_at_a_time = asyncio.Lock()
        self._serving: dict[str, Callable[[int], None]] = {}
        site.closing.push_async_callback(self._close)

    async def of(self, host: str, download: str, served_on: Callable[[int], None]) -> WebServer:
        """Return the web server of a host; it calls ``served_on`` with the port of wget.

        Raises ``LabError`` if it does not start.
        """
        self._serving[download] = served_on
        async with self._one_at_a_time:
            server = self._servers.get(host)
            if server is None or server.ended:
                server = await WebServer.start(self._namespace(host), self._served)
                self._servers[host] = server
        return server

    async def _close(self) -> None:
        await asyncio.gather(*(server.stop() for server in self._servers.values()))

    def _served(self, download: str, port: int) -> None:
        if download in self._serving:
            self._serving[download](port)


class RunningDownload(Connected):
    """A running download. It ends when it is complete, is stopped, or wget dies."""

    def __init__(self, command: StartDownload, site: Site, server: WebServer, port: int) -> None:
        """Prepare a download; the server listens on ``port``."""
        super().__init__(command, site)
        self._command, self._server, self._probe = command, server, site.probe
        self.began = self._reported_at = site.clock()
        self._arrived = 0
        self.sports = range(port, port + 1)
        self._server_port = port
        self._port: int | None = None

    @property
    def opening_under(self) -> str | None:
        """Algorithm requested for the connection; None once it is open or has ended."""
        known = self._probe.counters(self.name) is not None
        return None if known or self.ended.is_set() else self._command.cc

    async def start(self, entry: GateEntry) -> None:
        """Start wget. Raises ``LabError`` if that fails."""
        command = self._command
        cc = congestion.require(command.cc) if command.cc else None
        server = f"{self._site.network.address(self.src)}:{self._server_port}"
        line = wget_argv(server, command.bytes, self.name, cc)
        self._program, self.began = await entry.start(self.receiver, line, Hold("connect"))
        self._program.ignore_output()
        self._emit(
            DownloadStarted(
                t=self.began,
                download=self.name,
                src=self.src,
                dst=self.dst,
                bytes=command.bytes,
                cc=command.cc or "",
            )
        )
        self._attending = asyncio.create_task(self._attend())

    def served_on(self, port: int) -> None:
        """Record the connection; ``port`` is wget's."""
        self._port = port
        if not self.ended.is_set():
            self._probe.track(self.name, self.src, sport=self._server_port, dport=port)

    def watch(self) -> None:
        """Process a sweep: report the progress of the download."""
        now = self._clock()
        waiting = self._port is None or self.ended.is_set()
        if waiting or now - self._reported_at < PROGRESS_INTERVAL_S:
            return
        counters = self._probe.counters(self.name)
        # TCP counts the HTTP header too; it is too short to matter.
        arrived = min(counters.bytes_acked, self._command.bytes) if counters else 0
        if arrived > self._arrived:
            self._arrived, self._reported_at = arrived, now
            self._emit(DownloadProgress(t=now, download=self.name, bytes=arrived))

    def switch(self, cc: str) -> None:
        """Change the congestion control of the download's connection.

        Raises ``UnsupportedError``, and ``CommandError`` unless that connection is open.
        """
        if self._port is None:
            raise CommandError(f"download {self.name} has no connection yet")
        congestion.switch(self._server.pid, [(self._server_port, self._port)], cc)

    async def _attend(self) -> None:
        status = await self._program.wait()
        result = read_result(self._program.last_words()) if status == 0 else None
        if self._port is not None:
            self._probe.untrack(self.name)
        now = self._clock()
        size, seconds = result or (self._arrived, now - self.began)
        error = None if result or self._asked else self._program.last_words()
        self.ended.set()
        self._emit(
            DownloadEnded(t=now, download=self.name, bytes=size, duration_s=seconds, error=error)
        )


async def start(
    command: StartDownload, site: Site, entry: GateEntry
) -> tuple[StartDownload, RunningDownload]:
    """Start wget, and the web server of its host if need be."""
    name, src, dst = command.download or "", command.src or "", command.dst or ""
    command = replace(command, cc=site.choose_cc(src, command.cc))

    def served_on(there: int) -> None:
        download.served_on(there)
        site.connected(name, name, port, there)

    server = await site.shared(WebServers, lambda: WebServers(site)).of(src, name, served_on)
    port = site.ports.web()
    packets = Packets((src, dst), STREAMS, range(port, port + 1), None)
    site.follow(command, packets)
    download = RunningDownload(command, site, server, port)
    with site.sending(command, packets):
        await download.start(entry)
    return command, download
