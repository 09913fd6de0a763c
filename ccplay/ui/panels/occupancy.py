"""The occupancy of a queue as text and as a bar."""

from __future__ import annotations

from ccplay.plots.settings import counts_bytes
from ccplay.ui.cells.sheet import Run
from ccplay.ui.view import View


def occupancy(view: View, link: str) -> tuple[str, float]:
    """Return the length of a link's queue as text, and as a share of its limit or peak."""
    queue, tick = view.state.queues.get(link), view.tick
    setting = view.state.link_at(link, view.t)
    if queue is None:
        return "", 0.0
    qdisc = setting.setting.qdisc if setting else None
    in_bytes = counts_bytes(qdisc)
    value = queue.series["backlog" if in_bytes else "qlen"].at(tick) or 0.0
    limit = qdisc.options.get("limit") if qdisc else None
    if isinstance(limit, int | float) and limit > 0:
        if in_bytes:
            return f"{value / 1e3:.0f}/{limit / 1e3:.0f} kB", value / limit
        return f"{value:.0f}/{limit:.0f} pkt", value / limit
    peak = queue.series["qlen"].extremes(0, tick + 1)
    return f"{value:.0f} pkt", value / max(peak[1] if peak else 1.0, 1.0)


def gauge(view: View, share: float, width: int) -> list[Run]:
    """Return a bar of ``width`` cells between two end marks, filled by ``share``, from 0 to 1."""
    steps = view.glyphs.queue_steps
    eighths = round(min(max(share, 0.0), 1.0) * width * (len(steps) - 1))
    full, part = divmod(eighths, len(steps) - 1)
    bar = steps[-1] * full + (steps[part] if part else "")
    ink = view.ink("queue") if share < 0.95 else view.ink("drop")
    return [
        ("▕" if view.glyphs.name == "unicode" else "[", view.ink("axis")),
        (f"{bar:<{width}}", ink),
        ("▏" if view.glyphs.name == "unicode" else "]", view.ink("axis")),
    ]
