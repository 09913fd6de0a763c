"""The banner: lines shown only for a caption or notice, or if the lab is built, fails or ends."""

from __future__ import annotations

from textwrap import wrap

from ccplay.state.lab_state import Entry
from ccplay.ui.cells.sheet import Row, fit
from ccplay.ui.view import View
from ccplay.units import format_clock

_READ_S, _READ_CHARACTER_S = 6.0, 0.06
"""Shortest time in seconds that a caption is shown, and seconds per character of a longer one."""

_MOST_LINES = 4

_ROOMY = 36
"""Smallest height in lines of a screen on which a caption has blank lines above and below."""


def rows(view: View, width: int, height: int) -> list[Row]:
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
    if view.pointer is not None and view.pointer.text:
        text = f"{view.glyphs.mark} {format_clock(view.pointer.t)}  {view.pointer.text}"
        return _lines(view, text, width, _inverse(view, "mark"), centred=True)
    if (mark := captioned(view)) is not None:
        ink = _inverse(view, "mark")
        lines = _lines(view, mark.text, width, ink, centred=True)
        blank: Row = [(" " * width, ink)]
        return [blank, *lines, blank] if height >= _ROOMY else lines
    return []


def captioned(view: View) -> Entry | None:
    """Return the mark whose text is the current caption; None if there is none.

    In a replay faster than real time, a caption stays for as many seconds of real time as live.
    """
    head = view.playhead
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
        return [(fit(glyphs.translate(f" {step}"), width, glyphs.ellipsis), view.ink("warn"))]
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
