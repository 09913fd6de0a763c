"""What the three plots show: cwnd and ssthresh, the queue and its limit, RTT, ping and base.

In the place of RTT a variable that algorithms tell of themselves may stand.
"""

from __future__ import annotations

from collections.abc import Callable

from ccplay.analysis.windows import credible
from ccplay.model.values import Qdisc
from ccplay.model.variables import variable as meaning
from ccplay.model.wording import limit_unit
from ccplay.state.lab_state import Flow, Ping
from ccplay.ui.plots import ghost_plots, theory
from ccplay.ui.plots import variable_choice as own
from ccplay.ui.plots.plot import Inks, Picture
from ccplay.ui.plots.traces import (
    CountTrace,
    DotTrace,
    Pen,
    SeriesTrace,
    StepTrace,
    Trace,
    TracedTrace,
)
from ccplay.ui.view import View

_LEAST = {"ms": 2.0, "segments": 8.0}
_LEAST_FRACTION = 0.1
"""Axes never end below these."""

_CROWD = 3
"""With more flows than this only the selected one shows its ssthresh."""


def inks(view: View) -> Inks:
    """Return the colours of axes and marks."""
    return Inks(
        axis=view.ink("axis"),
        grid=view.ink("grid"),
        text=view.ink("muted"),
        muted=view.ink("muted"),
        mark=view.ink("mark"),
        cursor=view.ink("cursor"),
        ghost=view.ghost_ink("mark"),
    )


def picture(
    view: View,
    traces: list[Trace],
    counts: tuple[CountTrace, ...] = (),
    hint: tuple[str, ...] = (),
    least: float = 8.0,
) -> Picture:
    """Return a picture of ``traces`` over the playhead's window."""
    head = view.playhead
    marks = tuple(
        each.t for each in view.state.log if each.is_mark and head.left <= each.t <= head.until
    )
    return Picture(
        left=head.left,
        width=head.width,
        until=head.until,
        traces=tuple(traces),
        counts=counts,
        marks=marks,
        ghost_marks=ghost_plots.marks(view),
        cursor=None if head.running else head.t,
        hint=hint if not traces else (),
        least=least,
        glyphs=view.glyphs,
        inks=inks(view),
    )


def hint(view: View, what: str, key: str) -> tuple[str, ...]:
    """Say what to do where there is nothing to see."""
    if view.session.error or view.state.phase in ("starting", "building"):
        return ()
    if view.session.live:
        return (f"no {what} yet", "", f"press {key} to start one")
    return (f"no {what} at this time",)


def cwnd(view: View) -> Picture:
    """Return the congestion windows, in segments."""
    names = _flows_from_bottom_to_top(view)
    traces: list[Trace] = [*ghost_plots.flows(view, "cwnd")]
    for name in names:
        if len(names) <= _CROWD or name == view.selected:
            flow = view.state.flows[name]
            pen = Pen(view.ink("ssthresh"), "dotted", ascii=view.glyphs.dotted)
            sampled = SeriesTrace(
                flow.series["ssthresh"],
                pen,
                interval=view.interval,
                scaled=False,
                most=credible("ssthresh"),
            )
            traces.append(_traced(sampled, flow, "ssthresh"))
    traces += [_flow_trace(view, name, "cwnd", 1.0) for name in names]
    traces += theory.traces(view)
    return picture(view, traces, hint=hint(view, "flow", "f"))


def rtt(view: View) -> Picture:
    """Return round-trip times, in milliseconds."""
    names = _flows_from_bottom_to_top(view)
    traces: list[Trace] = []
    for ping in view.state.of(Ping).values():
        if ping.started < view.playhead.until:
            pen = Pen(view.ink("ping"), "dots", ascii=":")
            traces.append(DotTrace(ping.rtt_us, pen, 1e-3))
    traces += [_flow_trace(view, name, "srtt_us", 1e-3) for name in names]
    base = tuple(each for each in view.base_rtt if each[0] <= view.playhead.until)
    if traces and base:
        pen = Pen(view.ink("base_rtt"), "dotted", ascii="-")
        traces.insert(0, StepTrace(base, pen))
    traces[:0] = [*ghost_plots.pings(view), *ghost_plots.flows(view, "srtt_us", 1e-3)]
    return picture(view, traces, hint=hint(view, "ping", "p"), least=_LEAST["ms"])


def variable(view: View, name: str) -> Picture:
    """Return a variable of algorithms, of every flow that tells it."""
    unit, factor = own.axis(view, name)
    series = {
        each: view.state.flows[each].own.get(name) for each in _flows_from_bottom_to_top(view)
    }
    traces: list[Trace] = [*ghost_plots.flows(view, name, factor, own=True)]
    traces += [
        SeriesTrace(told, _flow_pen(view, each), factor, view.interval)
        for each, told in series.items()
        if told is not None
    ]
    least = _LEAST_FRACTION if meaning(name).one else _LEAST.get(unit, 1.0)
    return picture(view, traces, least=least)


def third(view: View) -> Picture:
    """Return what the third plot shows: round-trip times, or a variable of algorithms."""
    name = own.shown(view)
    return rtt(view) if name is None else variable(view, name)


def queue(view: View) -> Picture:
    """Return the occupancy of the shown queue: packets, or kB where its limit is in bytes."""
    if view.queue is None or view.link is None:
        return picture(view, [*ghost_plots.queue(view, in_bytes=False)])
    in_bytes = counts_bytes(view)
    series = view.queue.series
    ghost = ghost_plots.queue(view, in_bytes=in_bytes)
    traces: list[Trace] = [
        SeriesTrace(
            series["backlog" if in_bytes else "qlen"],
            # Beside a second curve the ground below the first is more clutter than help.
            Pen(view.ink("queue"), "line" if ghost else "area", ascii="#"),
            factor=1e-3 if in_bytes else 1.0,
            interval=view.interval,
        )
    ]
    limits = tuple(
        (change.t, _limit(change.setting.qdisc, in_bytes))
        for change in view.state.links.get(view.link, ())
        if change.t <= view.playhead.until
    )
    if any(limit is not None for _, limit in limits):
        pen = Pen(view.ink("queue_limit"), "dotted", ascii="-")
        greatest = series["qlen"].extremes(0, view.tick + 1)
        # A limit far above all that ever queued would press the plot flat.
        near = in_bytes or max(v or 0 for _, v in limits) <= 3 * max(greatest or (0, 0)) + 100
        traces.insert(0, StepTrace(limits, pen, float(near)))
    traces[:0] = ghost
    counts = (
        CountTrace(series["drops"], Pen(view.ink("drop"), mark=view.glyphs.drop)),
        CountTrace(series["ecn_marks"], Pen(view.ink("mark"), mark=view.glyphs.mark)),
    )
    return picture(view, traces, counts)


def counts_bytes(view: View) -> bool:
    """Say whether the limit of the shown queue is in bytes, at the moment shown."""
    setting = view.setting
    qdisc = setting.setting.qdisc if setting else None
    return qdisc is not None and "limit" in qdisc.options and limit_unit(qdisc.kind) == "bytes"


def _limit(qdisc: Qdisc | None, in_bytes: bool) -> float | None:
    if qdisc is None or (limit_unit(qdisc.kind) == "bytes") != in_bytes:
        return None
    limit = qdisc.options.get("limit")
    if not isinstance(limit, int | float):
        return None
    return limit * 1e-3 if in_bytes else float(limit)


def _flows_from_bottom_to_top(view: View) -> list[str]:
    """Return the flows that the window shows anything of, the selected one last."""
    head = view.playhead
    names = [
        each.name
        for each in view.state.flows.values()
        if each.started < head.until and (each.ended is None or each.ended > head.left)
    ]
    return sorted(names, key=lambda name: name == view.selected)


def _flow_pen(view: View, name: str) -> Pen:
    return Pen(
        view.flow_ink(name),
        mark=view.flow_mark(name),
        lane=view.number(name) * 5 % 12,
        ascii=view.flow_mark(name),
    )


def _flow_trace(view: View, name: str, field: str, factor: float) -> Trace:
    flow, pen = view.state.flows[name], _flow_pen(view, name)
    sampled = SeriesTrace(flow.series[field], pen, factor, view.interval, most=credible(field))
    return _traced(sampled, flow, field)


def _traced(sampled: SeriesTrace, flow: Flow, field: str) -> Trace:
    if flow.trace is None:
        return sampled
    return TracedTrace(sampled, flow.trace.series[field])


PICTURES: dict[str, Callable[[View], Picture]] = {"cwnd": cwnd, "queue": queue, "rtt": third}
