"""Checks whether the steps of a timeline took effect on time."""

from __future__ import annotations

from ccplay.model.events import MOST_LATE_S, Applied
from ccplay.model.wording import describe
from ccplay.state.lab_state import LabState


def late_steps(state: LabState) -> list[Applied]:
    """Return the steps that took effect too late, the latest first."""
    late = [step for step in state.applied if step.late_s > MOST_LATE_S]
    return sorted(late, key=lambda step: step.late_s, reverse=True)


def lateness_text(state: LabState) -> str | None:
    """Return a description of the latest step; None if all were on time."""
    late = late_steps(state)
    if not late:
        return None
    worst, start = late[0], state.ready_at or 0.0
    due, applied = ((worst.due or 0.0) - start, worst.t - start)
    text = (
        f"the step due at {due:.1f} s ({describe(worst.command)}) took effect at {applied:.1f} s, "
        f"more than {MOST_LATE_S} s late"
    )
    others = len(late) - 1
    if others:
        text += f", as {others} other step{'s were' if others > 1 else ' was'}"
    return text
