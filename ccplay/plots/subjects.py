"""Which subjects have a variable, and where its values are: one table for all that draw plots.

A subject is a connection, a queue, or other traffic. Screen, figures and browsers differ only in
how they draw the series.
"""

from __future__ import annotations

from collections.abc import Iterable

from ccplay.model.series import Series
from ccplay.model.variables import Variable
from ccplay.state.lab_state import LabState
from ccplay.state.samples import Queue
from ccplay.traffic.base import Traffic
from ccplay.traffic.connections import Flow


def owners(
    state: LabState, variable: Variable, flows: Iterable[Flow] | None = None
) -> list[Traffic | Queue]:
    """Return the subjects that have a variable, in the order in which they began.

    ``flows`` are the connections to consider; None stands for all.
    """
    connections = state.flows.values() if flows is None else flows
    candidates: list[Traffic | Queue] = []
    match variable.subject:
        case None:
            candidates = [*connections, *state.queues.values()]
        case "flow":
            candidates = [*connections]
        case "queue":
            candidates = [*state.queues.values()]
        case kind:
            candidates = [each for each in state.traffic.values() if each.kind == kind]
    return [each for each in candidates if series_of(each, variable) is not None]


def series_of(subject: Traffic | Queue, variable: Variable) -> Series | None:
    """Return the series of a variable, or of the counter behind a rate; None if there is none."""
    if variable.subject is not None:
        return subject.series.get(variable.series)
    return subject.own.get(variable.series) if isinstance(subject, Flow | Queue) else None


def name_of(subject: Traffic | Queue) -> str:
    """Return the name of a subject: that of traffic, or a queue's link."""
    return subject.link if isinstance(subject, Queue) else subject.name
