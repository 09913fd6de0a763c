"""The first line: the session, its network, the moment shown, and its health."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

from ccplay.model.events import Health, LinkChanged
from ccplay.model.topologies import describe_topology
from ccplay.model.wording import describe_qdisc
from ccplay.ui.cells.sheet import Row, Run, length, spread, whole_items
from ccplay.ui.plots import ghost_plots
from ccplay.ui.view import View
from ccplay.units import format_clock, format_rate, format_time_us

_LATE_US = 2_000
"""Lateness of the delay line at p99, in µs, above which RTTs of tens of ms are distorted."""

_STEAL = 0.05

_MOST_MISSED = 0.05
"""Largest share of a second's samples that may be missed before the plots show gaps."""

_ENOUGH_S, _RECENT_S = 10, 60
"""Smallest and largest number of seconds over which missed samples are added up."""


def rows(view: View, width: int) -> list[Row]:
    """Return the header as one row."""
    left: list[Run] = [(" ccplay ", f"bold {view.ink('text')}")]
    if view.session.title:
        left.append((f" {view.session.title} ", f"bold {view.ink('text')}"))
    left += ghost_plots.legend(view, width)
    now = [*_clock(view), ("  ", ""), *_health(view), (" ", "")]
    right = [*_audience(view), *_captures(view), *now]
    if width >= 100:
        room = width - length(left) - length(right) - 3
        left.append((f" {_setup(view, room)}".rstrip(), view.ink("muted")))
    return [spread(left, right, width, view.glyphs.ellipsis)]


def _setup(view: View, width: int) -> str:
    if view.network is None:
        return ""
    words = [describe_topology(view.network.topology)]
    if view.setting is not None:
        words += describe_setting(view.setting)
    return whole_items(words, f" {view.glyphs.separator} ", width)


def describe_setting(change: LinkChanged) -> list[str]:
    """Return a link's rate, delay and queue as short texts, without those that are not set."""
    setting = change.setting
    words = []
    if setting.rate:
        words.append(format_rate(setting.rate))
    if setting.delay_us:
        words.append(format_time_us(setting.delay_us))
    if setting.qdisc is not None:
        words.append(describe_qdisc(setting.qdisc))
    return words


def _clock(view: View) -> list[Run]:
    head, glyphs = view.playhead, view.glyphs
    clock = (f" {format_clock(head.t)}", f"bold {view.ink('text')}")
    if view.state.phase in ("starting", "building") and not view.session.done:
        return [(f"{glyphs.frozen} {view.state.phase}", view.ink("warn")), clock]
    if view.unread:
        return [(f"{glyphs.frozen} reading", view.ink("warn")), clock]
    if not head.running:
        word = "paused" if head.recorded else "ended" if view.session.done else "frozen"
        return [(f"{glyphs.frozen} {word}", f"bold {view.ink('cursor')}"), clock]
    if head.recorded:
        word = f"{glyphs.replay} replay {head.speed:g}×"
        return [(glyphs.translate(word), f"bold {view.ink('good')}"), clock]
    return [(f"{glyphs.live} live", f"bold {view.ink('good')}"), clock]


def _audience(view: View) -> list[Run]:
    if not view.audience:
        return []
    return [(view.audience, f"bold {view.ink('text')}"), ("  ", "")]


def _captures(view: View) -> list[Run]:
    names = [each.capture for each in view.state.captures.values() if each.t <= view.t]
    if not names:
        return []
    what = ", ".join(names) if len(names) < 3 else f"{len(names)} links"
    return [(f"{view.glyphs.live} capturing {what}", f"bold {view.ink('warn')}"), ("  ", "")]


def _health(view: View) -> list[Run]:
    if view.session.error:
        word = "rest unreadable" if view.session.recorded else "lab died"
        word = "connection lost" if view.watching else word
        return [(word, f"bold {view.ink('bad')}")]
    healths = view.state.healths
    until = bisect_right(healths, view.t, key=lambda each: each.t)
    recent = healths[max(until - _RECENT_S, 0) : until]
    words = trouble(recent)
    if view.setting is not None and view.setting.offloads:
        words.append("offloads on")
    if words:
        return [(", ".join(words), f"bold {view.ink('warn')}")]
    return [("health ok", view.ink("muted"))] if recent else []


def trouble(recent: Sequence[Health]) -> list[str]:
    """Return the reasons why the last second's measurements can't be trusted; empty if they can.

    A single missed sample changes no conclusion, unless they add up over the seconds before.
    """
    if not recent:
        return []
    health, words = recent[-1], []
    every = health.ticks + health.missed
    if health.missed > _MOST_MISSED * every:
        words.append(f"{health.missed} of {every} samples missed")
    elif len(recent) >= _ENOUGH_S:
        from ccplay.analysis.trust import MOST_MISSED  # noqa: PLC0415 - after first paint

        missed = sum(each.missed for each in recent)
        if missed > MOST_MISSED * (missed + sum(each.ticks for each in recent)):
            words.append(f"{missed} samples missed in {len(recent)} s")
    if health.steal > _STEAL:
        words.append(f"{health.steal:.0%} CPU stolen")
    if (health.delay_late_p99_us or 0) > _LATE_US:
        words.append(f"delay {format_time_us(health.delay_late_p99_us or 0)} late")
    if health.events_dropped:
        words.append(f"{health.events_dropped} events lost")
    return words
