"""A trace drawn as text: its capacity and its delay over time, with means and extremes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise

from ccplay.trace.content import Content
from ccplay.trace.schedule import Course, capacity
from ccplay.units import format_rate, format_time_us

_WIDTH, _HEIGHT = 72, 8
_BLOCKS = " ▁▂▃▄▅▆▇█"


def draw(content: Content) -> Iterator[str]:
    """Yield the lines of the drawing, each with its end."""
    length = content.length_s
    if not length:
        rate, size = content.policer
        yield f"a policer: {format_rate(rate)}, bucket of {size:g} bytes\n"
        return
    edges = [length * at / _WIDTH for at in range(_WIDTH + 1)]
    if content.mean_bps is not None:
        between = capacity(content, 0.0)
        values = [between(a, b) for a, b in pairwise(edges)]
        yield f"capacity: mean {format_rate(content.mean_bps)}, {_span(values, format_rate)}\n"
        yield from _area(values, format_rate(max(values)))
    if content.mean_delay_us is not None:
        course = Course(content.delays, 0.0)
        values = [course.at(edge) for edge in edges[:-1]]
        mean = format_time_us(content.mean_delay_us)
        yield f"one-way delay: mean {mean}, {_span(values, format_time_us)}\n"
        yield from _area(values, format_time_us(max(values)))
    if len(content.losses):
        yield f"loss: up to {max(content.losses.values) * 100:g} %\n"
    middle = f"{length / 2:g} s"
    end = f"{length:g} s, then again"
    yield f"{'':>12} 0{middle:^{_WIDTH - 1 - len(end)}}{end}\n"


def _span(values: Sequence[float], show: Callable[[float], str]) -> str:
    return f"{show(min(values))} to {show(max(values))} over {len(values)} parts"


def _area(values: Sequence[float], top: str) -> Iterator[str]:
    """Yield rows of blocks; the highest value fills all of them."""
    steps = [round(value / (max(values) or 1) * _HEIGHT * 8) for value in values]
    for row in range(_HEIGHT - 1, -1, -1):
        cells = "".join(_BLOCKS[min(8, max(0, each - row * 8))] for each in steps)
        label = top if row == _HEIGHT - 1 else "0" if row == 0 else ""
        yield f"{label:>12} {cells}\n"
