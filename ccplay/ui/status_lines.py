"""The lines around the plots: header, banner, event log or receiver's table, and footer."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from textwrap import wrap

from ccplay.analysis.results import Checkpoint
from ccplay.analysis.summary import Receiver, Second
from ccplay.model.events import Health
from ccplay.model.moving import show_trace
from ccplay.model.topologies import describe_topology
from ccplay.model.values import LinkSetting
from ccplay.model.wording import describe_qdisc
from ccplay.traffic.base import LogEntry
from ccplay.traffic.connections import Flow
from ccplay.ui import plot_ghosts
from ccplay.ui.cells import Row, Run, fit, length, spread, whole_items
from ccplay.ui.view import View, is_running
from ccplay.units import format_clock, format_rate, format_time_us

# --- the first line: the session, its network, the moment shown, and its health -------------------

_LATE_US = 2_000
"""Lateness of the delay line at p99, in µs, above which RTTs of tens of ms are distorted."""

_STEAL = 0.05

_MOST_MISSED = 0.05
"""Largest share of a second's samples that may be missed before the plots show gaps."""

_ENOUGH_S, _RECENT_S = 10, 60
"""Smallest and largest number of seconds over which missed samples are added up."""


def header(view: View, width: int) -> list[Row]:
    """Return the header as one row."""
    left: list[Run] = [(" ccplay ", f"bold {view.ink('text')}")]
    if view.session.title:
        left.append((f" {view.session.title} ", f"bold {view.ink('text')}"))
    left += plot_ghosts.legend(view, width)
    now = [*_clock(view), ("  ", ""), *_health(view), (" ", "")]
    audience = [(view.audience, f"bold {view.ink('text')}"), ("  ", "")] if view.audience else []
    right = [*audience, *_captures(view), *now]
    if width >= 100:
        room = width - length(left) - length(right) - 3
        left.append((f" {_setup(view, room)}".rstrip(), view.ink("muted")))
    return [spread(left, right, width, view.glyphs.ellipsis)]


def _setup(view: View, width: int) -> str:
    """Return topology, and rate, delay and queue of the shown link as far as they are set."""
    if view.network is None:
        return ""
    words = [describe_topology(view.network.topology)]
    setting = view.setting.setting if view.setting is not None else LinkSetting()
    if setting.trace:
        words.append(show_trace(setting.trace))
    if setting.rate and not setting.is_paced:
        words.append(format_rate(setting.rate))
    if setting.delay_us and not (setting.trace and setting.trace.has_delay):
        words.append(format_time_us(setting.delay_us))
    if setting.qdisc is not None:
        words.append(describe_qdisc(setting.qdisc))
    return whole_items(words, f" {view.glyphs.separator} ", width)


def _clock(view: View) -> list[Run]:
    head, glyphs = view.shown.playhead, view.glyphs
    clock = (f" {format_clock(head.t)}", f"bold {view.ink('text')}")
    if view.state.phase in ("starting", "building") and not view.session.done:
        return [(f"{glyphs.frozen} {view.state.phase}", view.ink("muted")), clock]
    if view.unread:
        return [(f"{glyphs.frozen} reading", view.ink("muted")), clock]
    if not head.running:
        word = "paused" if head.recorded else "ended" if view.session.done else "frozen"
        return [(f"{glyphs.frozen} {word}", f"bold {view.ink('cursor')}"), clock]
    if head.recorded:
        word = f"{glyphs.replay} replay {head.speed:g}×"
        return [(glyphs.translate(word), f"bold {view.ink('good')}"), clock]
    return [(f"{glyphs.live} live", f"bold {view.ink('good')}"), clock]


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


# --- the banner: shown only for a caption or notice, or if the lab is built, fails or ends --------

_READ_S, _READ_CHARACTER_S = 6.0, 0.06
"""Shortest time in seconds that a caption is shown, and seconds per character of a longer one."""

_MOST_LINES = 4

_ROOMY = 36
"""Smallest height in lines of a screen on which a caption has blank lines above and below."""


def banner(view: View, width: int, height: int) -> list[Row]:
    """Return the banner for a screen of this size; empty if there is nothing to report."""
    state, session = view.state, view.session
    if session.error:
        return _lines(view, f"{session.error}. {_left(view)}", width, _inverse(view, "bad"))
    if session.done and not session.recorded:
        reason = state.end_reason or "the lab ended"
        return _lines(view, f"Ended: {reason}. {_left(view)}", width, _inverse(view, "warn"))
    if state.phase in ("starting", "building") and not (session.recorded or view.catching_up):
        return [_progress(view, width)]
    if view.notice:
        return _lines(view, view.notice, width, f"bold {view.ink('cursor')}")
    if view.shown.pointer is not None and view.shown.pointer.text:
        text = f"{view.glyphs.mark} {format_clock(view.shown.pointer.t)}  {view.shown.pointer.text}"
        return _lines(view, text, width, _inverse(view, "mark"), centred=True)
    if (mark := captioned(view)) is not None:
        ink = _inverse(view, "mark")
        lines = _lines(view, mark.text, width, ink, centred=True)
        blank: Row = [(" " * width, ink)]
        return [blank, *lines, blank] if height >= _ROOMY else lines
    return []


def captioned(view: View) -> LogEntry | None:
    """Return the mark whose text is the current caption; None if there is none.

    In a replay faster than real time, a caption stays for as many seconds of real time as live.
    """
    head = view.shown.playhead
    speed = head.speed if head.recorded and head.running else 1.0
    marks = (each for each in view.state.log if each.kind == "mark" and each.t <= view.t + 1e-6)
    last = max(marks, key=lambda each: each.t, default=None)
    if last is None or not last.text.strip():
        return None
    lasts = max(_READ_S, _READ_CHARACTER_S * len(last.text)) * max(speed, 1.0)
    return last if view.t - last.t < lasts else None


def _lines(view: View, text: str, width: int, ink: str, *, centred: bool = False) -> list[Row]:
    """Return a text as wrapped lines; a text that is far too long ends in an ellipsis."""
    text = view.glyphs.translate(" ".join(text.split()))
    lines = wrap(text, max(width - 2, 1))
    if len(lines) > _MOST_LINES:
        rest = " ".join(lines[_MOST_LINES - 1 :])
        lines[_MOST_LINES - 1 :] = [fit(rest, width - 2, view.glyphs.ellipsis)]
    return [[(fit(each.center(width) if centred else f" {each}", width), ink)] for each in lines]


def _left(view: View) -> str:
    """Return the sentence that lists the keys that still work."""
    key = view.key
    scroll = f"{key('back')}{key('forward')}"
    if view.watching:
        return f"You can still scroll ({scroll}), quit ({key('quit')})."
    text = f"You can still scroll ({scroll}), save a picture ({key('picture')})"
    return f"{text}, quit ({key('quit')})."


def _progress(view: View, width: int) -> Row:
    glyphs, building = view.glyphs, view.state.building
    if building is None or not building.total:
        step = building.step if building else "starting the lab …"
        return [(fit(glyphs.translate(f" {step}"), width, glyphs.ellipsis), view.ink("text"))]
    bar = max(min(width // 3, 40), 8)
    full = round(bar * building.done / building.total)
    count = f" building {building.done}/{building.total} "
    return [
        (count, f"bold {view.ink('text')}"),
        (glyphs.queue_steps[-1] * full, view.ink("good")),
        (glyphs.horizontal * (bar - full), view.ink("grid")),
        (fit(f" {building.step}", width - bar - len(count), glyphs.ellipsis), view.ink("muted")),
    ]


def _inverse(view: View, name: str) -> str:
    return f"bold {view.look.textual_theme.background} on {view.ink(name)}"


# --- the event log: commands, events and errors, the newest line last -----------------------------

INKS = {
    "applied": "text",
    "mark": "mark",
    "traffic": "muted",
    "file": "text",
    "info": "muted",
    "warning": "warn",
    "error": "bad",
}
"""Name of the ink of an entry's text, by the kind of entry."""

WORDS = {"error": "failed: ", "warning": "warning: "}
"""First words of an entry's line, by the kind of entry."""


def log(view: View, width: int, height: int) -> list[Row]:
    """Return the title, then the last lines up to the moment shown; errors are not cut.

    If an error is longer than the panel, its first lines are shown, which have the place.
    """
    title: list[Run] = [("events", f"bold {view.ink('text')}")]
    lines: list[Row] = []
    for entry in reversed(view.entries(height - 1)):
        room = height - 1 - len(lines)
        lines = [*_log_lines(view, entry, width, room), *lines]
        if len(lines) >= height - 1:
            break
    return [title, *lines]


def log_height(view: View, width: int) -> int:
    """Return the lines in which the title and the newest entry fit, if it is an error."""
    newest = view.entries(1)
    return 1 + len(_log_lines(view, newest[0], width, 0)) if newest else 1


def _log_lines(view: View, entry: LogEntry, width: int, most: int) -> list[Row]:
    """Return an entry as one line, an error as up to ``most``; 0 means any number."""
    sign = view.glyphs.dashed_vertical if entry.is_mark else " "
    text = view.glyphs.translate(WORDS.get(entry.kind, "") + " ".join(entry.text.split()))
    bold = "bold " if entry.kind == "error" else ""
    room = max(width - 9, 1)
    whole = wrap(text, room) if entry.kind in WORDS else [text]
    if len(whole) > most > 0:
        whole = [*whole[: most - 1], " ".join(whole[most - 1 :])]
    heads = [format_clock(entry.t), *[" " * 5] * (len(whole) - 1)]
    return [
        [
            (head, view.ink("muted")),
            (f" {sign} ", view.ink("mark")),
            (fit(each, room, view.glyphs.ellipsis), bold + view.ink(INKS[entry.kind])),
        ]
        for head, each in zip(heads, whole, strict=True)
    ]


# --- the last line: the keys that a newcomer needs now --------------------------------------------

MOST_KEYS = 8
"""Largest number of entries in the footer; the last one leads to the help."""


def footer(view: View, width: int) -> list[Row]:
    """Return the footer, which always contains the key for help."""
    row: list[Run] = []
    last = _item(view, "help", "help")
    last[-1] = (last[-1][0].rstrip(), last[-1][1])
    for names, word in _needed_now(view)[: MOST_KEYS - 1]:
        item = _item(view, names, word)
        if length(row) + length(item) + length(last) <= width:
            row += item
    return [[*row, *last]]


def _needed_now(view: View) -> list[tuple[str, str]]:
    """Return ids of keys, each entry with its word, that matter at the moment, in their order."""
    running = view.shown.playhead.running
    time = [("freeze", "pause" if running else "resume"), ("back forward", "time")]
    look = [("zoom-in zoom-out", "zoom"), ("previous-flow next-flow", "select")]
    if view.watching:
        follow = [] if view.audience == "following" else [("follow", "follow")]
        return [*follow, *time, *look, ("explain", "explain"), ("quit", "quit")]
    if not view.session.live:
        speed = [("slower faster", "speed")] if view.session.recorded else []
        return [*time, *look, *speed, ("explain", "explain"), ("quit", "quit")]
    if not running:
        return [*time, ("end", "live"), *look, ("mark", "mark"), ("undo", "undo")]
    change = [("queue", "queue"), ("link", "link")]
    selected = view.state.traffic.get(view.shown.selected or "") or view.flow
    freeze = [("freeze", "freeze")]
    idle = selected is None or not is_running(selected, view.t)
    word = "start traffic" if idle else "start"
    start = [] if view.guided else [("start-traffic", word)]
    if idle:
        undo = [("undo", "undo")] if view.session.undoable else []
        return [*start, *change, *freeze, *undo, ("quit", "quit")]
    of_flow = [("congestion", "congestion")] if isinstance(selected, Flow) else []
    last = [("undo", "undo")] if view.session.undoable else [("explain", "explain")]
    return [*start, ("stop", "stop"), *of_flow, *change, *freeze, *last]


def _item(view: View, names: str, word: str) -> list[Run]:
    return [
        (f" {view.glyphs.translate(view.keys.together(names))}", f"bold {view.ink('cursor')}"),
        (f" {word} ", view.ink("muted")),
    ]


# --- the receiver's table: bytes delivered by every flow at each second, the newest row last ------

_CLOCK = 8
"""Width of the first column in cells."""

_LEAST, _MOST = 5, 26
"""Smallest and largest width of a flow's column in cells; wider rows are hard to follow."""

_RATES = ((23, 12), (18, 6), (0, 0))
"""Smallest widths of a column, and its cells for a rate: with its unit, without it, or none."""


def receiver_rows(view: View, width: int, height: int) -> list[Row]:
    """Return the head and the last seconds up to the moment shown, with the race's checkpoint."""
    table = Receiver(view.state, view.t)
    if not table.flows:
        head: list[Run] = [("receiver", f"bold {view.ink('text')}")]
        return [head, [("no flow has reached it yet", view.ink("muted"))]]
    room = width - 1 - _CLOCK
    column = min(max(room // len(table.flows), _LEAST), _MOST)
    names = table.flows[: room // column]
    finish = table.checkpoint()
    # The checkpoint stays visible: at its place, or above the seconds after it.
    seconds = table.rows(most=height - 1 - (finish is not None))
    lines = [(float(each.elapsed_s), _second(view, names, each, column)) for each in seconds]
    if finish is not None:
        lines.append((finish.elapsed_s, _finish(view, table, names, finish, column)))
        lines.sort(key=lambda line: line[0])
    return [_head(view, table, names, column), *(line for _, line in lines)]


def _head(view: View, table: Receiver, names: tuple[str, ...], column: int) -> list[Run]:
    hidden = len(names) < len(table.flows)
    title = f"{len(names)} of {len(table.flows)}" if hidden else "receiver"
    row: list[Run] = [(fit(title, _CLOCK), f"bold {view.ink('text')}")]
    rate = _rate_cells(column)
    for name in names:
        words = f"{view.flow_glyph(name)} {name}"
        if rate:
            words += f" {view.state.cc_at(view.state.flows[name], view.t)}"
        cell = column - rate
        if len(words) >= cell:
            words = fit(words, cell - 1, view.glyphs.ellipsis)
        row += [(words.rjust(cell), f"bold {view.flow_ink(name)}"), (" " * rate, "")]
    return row


def _second(view: View, names: tuple[str, ...], second: Second, column: int) -> list[Run]:
    row: list[Run] = [(f"{second.elapsed_s} s".rjust(_CLOCK), view.ink("muted"))]
    cells = _rate_cells(column)
    for amount, rate in list(zip(second.bytes, second.rates_bps, strict=True))[: len(names)]:
        text = "" if rate is None else f"{_three(rate / 1e6)}{' Mbit/s' if cells > 6 else 'M'}"
        row.append((_amount(amount, column - cells), view.ink("text")))
        row.append((text.rjust(cells)[:cells], view.ink("muted")))
    return row


def _finish(
    view: View, table: Receiver, names: tuple[str, ...], finish: Checkpoint, column: int
) -> list[Run]:
    ink = f"bold {view.ink('cursor')}"
    clock = f"{finish.elapsed_s:.{2 if finish.elapsed_s < 100 else 1}f} s"
    row: list[Run] = [(clock.rjust(_CLOCK), ink)]
    if _rate_cells(column) != _RATES[0][1]:
        return [*row, (_in_words(finish, len(names) * column), ink)]
    ratio = "" if finish.ratio is None else f"ratio {finish.ratio:.3f}"
    for name in names:
        text = "done" if name == finish.first else ratio if name in table.sizes else ""
        cells = _rate_cells(column)
        row.append((_amount(finish.bytes.get(name), column - cells) + text.rjust(cells), ink))
    return row


def _in_words(finish: Checkpoint, width: int) -> str:
    """Return the checkpoint as text, with the bytes if there is room."""
    text = f" flow {finish.first} done"
    if finish.ratio is None:
        return text
    one, other = list(finish.bytes.values())[:2]
    full = f"{text}  {one:,}/{other:,} = {finish.ratio:.3f}"
    return full if len(full) <= width else f"{text}  ratio {finish.ratio:.3f}"


def _rate_cells(column: int) -> int:
    return next(cells for least, cells in _RATES if column >= least)


def _amount(amount: int | None, cell: int) -> str:
    """Return a number of bytes, as precisely as fits into ``cell`` cells after a blank."""
    if amount is None:
        return "-".rjust(cell)
    power = 3 if amount >= 999_500_000 else 2 if amount >= 999_500 else 1
    value, letter = amount / 1000**power, " kMG"[power]
    digits = (_three(value), f"{value:.1f}", f"{value:.0f}")
    ways = (f"{amount:,}", *(f"{each}{letter}" for each in digits))
    return next((way for way in ways if len(way) < cell), ways[-1]).rjust(cell)


def _three(value: float) -> str:
    """Return a number with three digits or more, zeros too, so that a column does not flicker."""
    return f"{value:.{2 if value < 9.995 else 1 if value < 99.95 else 0}f}"
