"""Downloads: their progress and their results."""

from __future__ import annotations

from typing import ClassVar

import msgspec

from ccplay.model.columns import RATE, SECONDS, SEGMENTS, TEXT, Column, Table, percentile, rate_bps
from ccplay.model.traffic_events import DownloadEnded, DownloadProgress, DownloadStarted
from ccplay.state.connections import Connections
from ccplay.state.routes import ROUTES, Route, routes
from ccplay.state.traffic import Handlers


class Download(msgspec.Struct):
    """A download with its progress."""

    kind: ClassVar[str] = "download"
    name: str
    src: str
    dst: str
    total: int
    started: float
    bytes: int = 0
    duration_s: float | None = None
    ended: float | None = None
    error: str | None = None


class DownloadResult(msgspec.Struct, frozen=True, kw_only=True):
    """A web page fetched with wget."""

    id: str
    src: str
    dst: str
    bytes: int
    """Bytes that have arrived."""
    total: int
    """Bytes requested."""
    seconds: float | None
    """Seconds by wget's own clock; null if it did not finish."""
    rate_bps: float | None
    """Rate in bits per second over ``seconds``."""
    cwnd_max: float | None
    """Largest cwnd of the web server in segments."""
    routes: list[Route] = []
    """Paths that the data took, if there were several."""
    error: str | None

    @property
    def arrived(self) -> str:
        """Bytes that have arrived, with the total if some are missing: ``100 of 177,669``."""
        return (
            f"{self.bytes:,}" if self.bytes == self.total else f"{self.bytes:,} of {self.total:,}"
        )

    @property
    def path(self) -> str:
        """Source and destination: ``h1 → h2``."""
        return f"{self.src} → {self.dst}"


TABLES = (
    Table(
        "Downloads",
        (
            Column("download", ("id",)),
            Column("path", ("path",)),
            Column("bytes", ("arrived",), TEXT),
            Column("time", ("seconds",), SECONDS, none="unfinished"),
            Column("rate", ("rate_bps",), RATE),
            Column("cwnd max", ("cwnd_max",), SEGMENTS),
        ),
    ),
    ROUTES,
)
METRICS = {
    "bytes": "bytes that arrived",
    "rate_bps": "download rate",
    "seconds": "download time",
}
"""Names of a download's metrics."""


def result(state: Connections, download: Download) -> DownloadResult:
    """Return the result of a download so far."""
    finished = download.ended is not None and download.error is None
    seconds = download.duration_s if finished else None
    flow = state.flows.get(download.name)
    return DownloadResult(
        id=download.name,
        src=download.src,
        dst=download.dst,
        bytes=download.bytes,
        total=download.total,
        seconds=None if seconds is None else round(seconds, 6),
        rate_bps=None if seconds is None else rate_bps(download.bytes, seconds),
        cwnd_max=percentile(flow.series["cwnd"].all(), 100) if flow else None,
        routes=routes(flow.paths) if flow else [],
        error=download.error,
    )


def _download_started(state: Connections, event: DownloadStarted) -> None:
    state.add(Download(event.download, event.src, event.dst, event.bytes, event.t))
    state.open(event.download, "download", event)


def _download_progress(state: Connections, event: DownloadProgress) -> None:
    if (download := state.find(Download, event.download)) is not None:
        download.bytes = event.bytes


def _download_ended(state: Connections, event: DownloadEnded) -> None:
    if (flow := state.flows.get(event.download)) is not None:
        flow.ended, flow.error = event.t, event.error
    if (download := state.find(Download, event.download)) is not None:
        download.bytes, download.duration_s = event.bytes, event.duration_s
        download.ended, download.error = event.t, event.error
    if event.error:
        state.write(event.t, "error", f"download {event.download} failed: {event.error}")
    else:
        text = f"download {event.download} done in {event.duration_s:.2f} s"
        state.write(event.t, "traffic", text)


HANDLERS: Handlers = {
    DownloadStarted: _download_started,
    DownloadProgress: _download_progress,
    DownloadEnded: _download_ended,
}
