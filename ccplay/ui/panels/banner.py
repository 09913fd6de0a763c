"""A line shown only when needed: building, died, ended."""

from __future__ import annotations

from ccplay.ui.cells.sheet import Row, fit
from ccplay.ui.view import View


def rows(view: View, width: int) -> list[Row]:
    """Return the banner; empty in normal operation."""
    state, session = view.state, view.session
    if session.error:
        said = f" {session.error}. You can still scroll (←→), save a picture (s), quit (^q)."
        return [[(fit(view.glyphs.translate(said), width), _loud(view, "bad"))]]
    if session.done and not session.recorded:
        reason = state.end_reason or "the lab ended"
        said = f" Ended: {reason}. You can still scroll (←→), save a picture (s), quit (^q)."
        return [[(fit(view.glyphs.translate(said), width), _loud(view, "warn"))]]
    if state.phase in ("starting", "building") and not session.recorded:
        return [_progress(view, width)]
    if view.notice:
        text = view.glyphs.translate(f" {view.notice}")
        return [[(fit(text, width, view.glyphs.ellipsis), f"bold {view.ink('cursor')}")]]
    return []


def _progress(view: View, width: int) -> Row:
    building = view.state.building
    if building is None or not building.total:
        step = building.step if building else "starting the lab …"
        return [(fit(view.glyphs.translate(f" {step}"), width), view.ink("warn"))]
    bar = max(min(width // 3, 40), 8)
    full = round(bar * building.done / building.total)
    glyphs = view.glyphs
    return [
        (f" building {building.done}/{building.total} ", f"bold {view.ink('text')}"),
        (glyphs.queue_steps[-1] * full, view.ink("good")),
        (glyphs.horizontal * (bar - full), view.ink("grid")),
        (f" {building.step}", view.ink("muted")),
    ]


def _loud(view: View, name: str) -> str:
    return f"bold {view.look.textual_theme.background} on {view.ink(name)}"
