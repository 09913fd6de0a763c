"""Flows whose packets are followed from host to host on request."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from ccplay.bpf.support import lack
from ccplay.errors import CcplayError, UnsupportedError
from ccplay.lab.network.netns import Namespace
from ccplay.lab.traffic.monitor import SOURCE, Monitor, Stream
from ccplay.model.values import Monitored


class MonitoredStreams:
    """The connections of one flow while they are monitored."""

    def __init__(self, monitor: Monitor, streams: Sequence[Stream]) -> None:
        self._monitor, self._streams = monitor, streams
        self._before = dict.fromkeys(streams, (0, 0))

    def so_far(self, *, drained: bool = False) -> Monitored:
        """Return the measurements of all connections together.

        Once the network is ``drained``, packets that have not arrived are lost, not in flight.
        """
        found = [self._monitor.read(each) for each in self._streams]
        timed = [each for each in found if each.timed]
        packets = sum(each.timed for each in timed)
        return Monitored(
            sent=sum(each.sent if drained else each.reached for each in found),
            received=sum(each.received for each in found),
            received_bytes=sum(each.bytes for each in found),
            delay_mean_us=sum(each.delays for each in timed) / packets if packets else None,
            delay_min_us=min((each.least for each in timed), default=None),
            delay_max_us=max((each.greatest for each in timed), default=None),
        )

    def delay_us(self, stream: int) -> int | None:
        """Return a connection's mean delay in µs since the last call; None without packets."""
        one = self._streams[stream]
        account = self._monitor.read(one)
        timed, delays = self._before[one]
        self._before[one] = (account.timed, account.delays)
        new = account.timed - timed
        return round((account.delays - delays) / new) if new else None

    def end(self) -> None:
        """Stop monitoring the connections."""
        for each in self._streams:
            self._monitor.forget(each)


class Monitoring:
    """The monitor of all flows, created when the first flow needs it."""

    def __init__(self, warn: Callable[[str], None]) -> None:
        """Prepare; ``warn`` receives, once, the reason why monitoring is impossible here."""
        self._warn = warn
        self._monitor: Monitor | None = None
        self._refusal = ""
        self._loading = asyncio.Lock()

    async def watch(
        self, sender: Namespace, receiver: Namespace, streams: Sequence[Stream]
    ) -> MonitoredStreams | None:
        """Monitor connections that are about to open.

        Returns None if that is impossible; the flow then runs without a monitor.
        """
        if self._refusal:
            return None
        try:
            async with self._loading:
                if self._monitor is None:
                    self._monitor = await asyncio.to_thread(_load)
            for each in streams:
                self._monitor.watch(sender, receiver, each)
        except CcplayError as error:
            self._refusal = str(error)
            self._warn(f"one-way delays are not measured: {error}")
            return None
        return MonitoredStreams(self._monitor, streams)

    def close(self) -> None:
        """Remove the monitor."""
        if self._monitor is not None:
            self._monitor.close()


def _load() -> Monitor:
    """Build the monitor's programs unless they are built, and load them."""
    if (missing := lack()) is not None:
        raise UnsupportedError(f"{missing.reason}; {missing.remedy}")
    # Imported late: labs without monitors do not need it.
    from ccplay.bpf.build import build  # noqa: PLC0415

    image, _ = build(SOURCE)
    return Monitor(image)
