"""Downloads: a page fetched by wget from a web server, with its progress."""

from __future__ import annotations

from typing import Annotated, Self

from msgspec.structs import replace

from ccplay.model import settings
from ccplay.model.base import (
    Name,
    StartRoutedTraffic,
    StopTraffic,
    TrafficEnded,
    TrafficSample,
    TrafficStarted,
)
from ccplay.model.columns import (
    RATE,
    SECONDS,
    SEGMENTS,
    TEXT,
    Column,
    ResultTable,
    percentile,
    rate_bps,
)
from ccplay.model.quantities import Field
from ccplay.model.texts import NAME
from ccplay.model.variables import Variable, columns
from ccplay.traffic.base import Form, Samples, Tool, Traffic, TrafficKind, TrafficResult
from ccplay.traffic.connections import Connections
from ccplay.traffic.routes import ROUTES, Route, routes
from ccplay.units import format_rate, format_size

_NAME = Field(NAME, "The name of the download")
_BYTES = Variable("bytes", "arrived", "bytes", "download", named="bytes")


class StartDownload(StartRoutedTraffic, frozen=True):
    """Fetch ``bytes`` from a web server on ``src`` with wget on ``dst``."""

    WORD = "download"

    download: Annotated[str | None, _NAME] = None
    src: Annotated[
        str | None, replace(settings.SRC, meaning="The web server, which sends", label="web server")
    ] = None
    dst: Annotated[str | None, replace(settings.DST, label="wget on")] = None
    cc: Annotated[str | None, settings.CC] = None
    bytes: Annotated[
        int, replace(settings.PAYLOAD, label="size", hint="50 MB, 178 kB", unset="")
    ] = 177_669

    def detail(self) -> str:
        """Return what the event log shows of the start, apart from its path."""
        return format_size(self.bytes)


class StopDownload(StopTraffic, frozen=True):
    """End a download."""

    WORD = "download"

    download: Annotated[str, _NAME]


class DownloadStarted(TrafficStarted, frozen=True):
    """wget has started; its connection uses ``cc`` and is sampled under the download's name."""

    download: Name
    bytes: int
    cc: str = ""


class DownloadProgress(TrafficSample, frozen=True):
    """The bytes of a download that have arrived so far."""

    download: str
    bytes: int


class DownloadEnded(TrafficEnded, frozen=True):
    """A download has ended after ``duration_s`` seconds by wget's own clock."""

    download: str
    bytes: int
    duration_s: float


class Download(Traffic, kw_only=True):
    """A download with its progress; its connection is in the state's ``flows``."""

    kind: str = "download"
    DIED = "failed"

    total: int
    bytes: int = 0
    duration_s: float | None = None

    @classmethod
    def begin(cls, event: DownloadStarted) -> Self:
        """Return a download of which nothing has arrived."""
        name, src, dst = event.download, event.src, event.dst
        return cls(name=name, src=src, dst=dst, started=event.t, total=event.bytes)

    @property
    def goal(self) -> int:
        """Number of bytes requested."""
        return self.total

    def lines(self, t: float) -> tuple[str, ...]:
        """Return how it ended, with the rate over wget's own seconds if there is room."""
        if self.ended is None or self.ended > t:
            return ("",)
        if self.error:
            return (self.error,)
        seconds = self.duration_s or 0.0
        text = f"{format_size(self.total)} in {seconds:.2f} s"
        rates = (f"{text}, {format_rate(self.bytes * 8 / seconds)}",) if seconds else ()
        return (*rates, text)

    def measure(self, event: DownloadProgress) -> None:
        """Apply the progress."""
        self.bytes = event.bytes

    def outcome(self) -> str:
        """Return how long it took."""
        return f"done in {self.duration_s or 0:.2f} s"


class DownloadResult(TrafficResult, frozen=True, kw_only=True):
    """A web page fetched with wget."""

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

    @property
    def arrived(self) -> str:
        """Bytes that have arrived, with the total if some are missing: ``100 of 177,669``."""
        return (
            f"{self.bytes:,}" if self.bytes == self.total else f"{self.bytes:,} of {self.total:,}"
        )


TABLES = (
    ResultTable(
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

METRICS = {"bytes": "bytes that arrived", "rate_bps": "download rate", "seconds": "download time"}
"""Names of a download's metrics."""


def result(state: Connections, download: Download) -> DownloadResult:
    """Return the result of a download so far."""
    finished = download.ended is not None and download.error is None
    seconds = download.duration_s if finished else None
    flow = state.flows.get(download.name)
    return DownloadResult(
        **download.identity(),
        bytes=download.bytes,
        total=download.total,
        seconds=None if seconds is None else round(seconds, 6),
        rate_bps=None if seconds is None else rate_bps(download.bytes, seconds),
        cwnd_max=percentile(flow.series["cwnd"].all(), 100) if flow else None,
        routes=routes(flow.paths) if flow else [],
    )


def _close(state: Connections, event: DownloadEnded) -> None:
    if (flow := state.flows.get(event.download)) is not None:
        flow.ended, flow.error = event.t, event.error


KIND = TrafficKind(
    name="download",
    plural="downloads",
    prefix="w",
    start=StartDownload,
    stop=StopDownload,
    started=DownloadStarted,
    ended=DownloadEnded,
    samples=(DownloadProgress,),
    state=Download,
    more={
        DownloadStarted: lambda state, event: state.open(event.name, "download", event, event.cc),
        DownloadEnded: _close,
    },
    result=result,
    tables=TABLES,
    metrics=METRICS,
    metric="seconds",
    unmeasured={"seconds": "the download was not done before the end"},
    variables=(_BYTES,),
    tools=(Tool("wget", "wget", "generates downloads"),),
    brief=True,
    always_ends=True,
    connection=True,
    exported=Samples(
        DownloadProgress,
        {"download": ("download", "text"), **columns((_BYTES,))},
        "bytes received so far",
    ),
    form=Form(
        key="w",
        title="Download",
        about="a file from a web server, over TCP",
        asks=("bytes", "src", "dst", "cc"),
        verb="fetch",
    ),
    offer="download",
    offer_detail=lambda command: f"{format_size(command.bytes)} with wget",
)
