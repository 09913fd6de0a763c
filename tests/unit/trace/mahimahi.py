"""mahimahi's link as its definition has it, one millisecond and one byte at a time.

Written from the words of src/frontend/link_queue.cc, not from ``ccplay.trace.schedule``: slow, and
without any arithmetic of repetitions.
"""

from collections import deque
from collections.abc import Iterator, Sequence


def opportunities(times: Sequence[int]) -> Iterator[int]:
    """Yield the times of all opportunities in ms: the trace repeats from its last time."""
    base = 0
    while True:
        for each in times:
            yield base + each
        base += times[-1]


def departures(
    times: Sequence[int], packets: Sequence[tuple[float, int]], until_ms: int
) -> list[tuple[int, int]]:
    """Return the time in ms and the number of each packet that departs by ``until_ms``.

    ``packets`` are their arrivals in ms and their bytes, in order. A packet that arrives at the
    moment of an opportunity comes after it.
    """
    waiting: deque[tuple[int, int]] = deque()
    arrivals = deque((at, number, size) for number, (at, size) in enumerate(packets))
    found: list[tuple[int, int]] = []
    transit: tuple[int, int] | None = None
    for moment in opportunities(times):
        if moment > until_ms:
            return found
        while arrivals and arrivals[0][0] < moment:
            _, number, size = arrivals.popleft()
            waiting.append((number, size))
        for _ in range(1504):
            if transit is None:
                if not waiting:
                    break
                transit = waiting.popleft()
            number, left = transit
            transit = (number, left - 1)
            if left == 1:
                found.append((moment, number))
                transit = None
    raise AssertionError
