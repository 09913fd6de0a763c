"""Downloads: how far each has come."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ccplay.model.traffic_events import DownloadEnded, DownloadProgress, DownloadStarted
from ccplay.state.connections import Connections
from ccplay.state.traffic import Handlers


@dataclass(slots=True)
class Download:
    """A download and how far it has come."""

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
