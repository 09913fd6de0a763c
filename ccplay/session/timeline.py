"""A timeline as it is played: the commands that are due in a given state."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from ccplay.model.commands import Build, TraceFlow
from ccplay.model.traffic import started_by, stopped_by
from ccplay.scenario.values import Step
from ccplay.session.due_steps import DueStep
from ccplay.state.lab_state import LabState


class Script:
    """The waiting steps. Time counts from the moment at which the network is ready (``Ready``).

    It depends only on the state, so it plays the same with and without a screen.
    """

    def __init__(self, timeline: Sequence[Step]) -> None:
        self._waiting = list(timeline)
        commands = [step.command for step in timeline]
        stopped = {kind.name_of(each) for each in commands if (kind := stopped_by(each))}
        self._ending = [
            name
            for each in commands
            if (kind := started_by(each)) is not None
            and (name := kind.name_of(each)) is not None
            and (kind.ends(each) or name in stopped)
        ]

    @property
    def names(self) -> list[str]:
        """The names of all traffic yet to be started, in the order of the file."""
        in_order = sorted(self._waiting, key=lambda step: step.number)
        commands = [step.command for step in in_order]
        started = [kind.name_of(each) for each in commands if (kind := started_by(each))]
        return [name for name in started if name is not None]

    def foretold(self, build: Build) -> Build:
        """Return ``build`` with everything that the lab must know of the timeline beforehand.

        Traffic started by hand must not take a name of the script.
        """
        traces = any(isinstance(step.command, TraceFlow) for step in self._waiting)
        return msgspec.structs.replace(build, reserved=self.names, traces=traces)

    @property
    def waiting(self) -> tuple[Step, ...]:
        """Steps that are not due yet."""
        return tuple(self._waiting)

    def due(self, state: LabState) -> list[DueStep]:
        """Return the steps that are due, the earliest first, each once."""
        if state.ready_at is None or not self._waiting:
            return []
        moments = [(self._moment(step, state), step) for step in self._waiting]
        due = [
            (moment, step) for moment, step in moments if moment is not None and moment <= state.now
        ]
        if not due:
            return []
        self._waiting = [step for moment, step in moments if moment is None or moment > state.now]
        # The sort is stable: steps of one moment keep the order of the file.
        return [
            DueStep(moment, step.command, step.place)
            for moment, step in sorted(due, key=lambda pair: pair[0])
        ]

    def next_at(self, state: LabState) -> float | None:
        """Return the lab time of the next known step; None if there is none."""
        moments = (self._moment(step, state) for step in self._waiting)
        return min((moment for moment in moments if moment is not None), default=None)

    def finished(self, state: LabState) -> bool:
        """Whether all steps are done and all traffic that was to end has ended."""
        return not self._waiting and all(ended_at(state, name) is not None for name in self._ending)

    def _moment(self, step: Step, state: LabState) -> float | None:
        since = state.ready_at if step.after is None else ended_at(state, step.after)
        return None if since is None else since + step.at_s


def ended_at(state: LabState, name: str) -> float | None:
    """Return when traffic of this name ended; None if it runs or was never started."""
    found = state.traffic.get(name)
    return None if found is None else found.ended
