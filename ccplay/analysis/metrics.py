"""Metrics of a run by name: the path of a number in its result, such as ``flows.1.fct_s``.

Scenarios name metrics in ``metrics``, ``expect`` and ``published``; expectations are checked here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any, get_args, get_type_hints

import msgspec

from ccplay.analysis.results import CaseResult, Check, DirectionResult, InterfaceResult, QueueResult
from ccplay.analysis.sharing import Reaction
from ccplay.errors import ScenarioError
from ccplay.model.base import Command
from ccplay.model.commands import SetClasses, SetLink, SetQdisc
from ccplay.model.network import BOTTLENECK, Network
from ccplay.model.quantities import did_you_mean, quote
from ccplay.model.topologies import plan
from ccplay.model.values import TrafficClass
from ccplay.scenario.evidence import unaliased
from ccplay.scenario.values import Case, Expectation, Scenario
from ccplay.traffic import TRAFFIC, ends_of, started_by
from ccplay.traffic.flow import StartFlow, Subflow
from ccplay.traffic.ping import StartPing

NO_METRICS = frozenset(
    ("name", "parameters", "repeat", "attempt", "checks", "health", "t", "streams", "started_s")
)
"""Fields of a result that are not metrics: they identify the run or qualify its trust."""

_KINDS = {kind.group: kind for kind in TRAFFIC}
_GROUPS = {*_KINDS, "queues", "interfaces", "directions", "reactions"}
_MEMBERS: dict[str, type[msgspec.Struct]] = {
    name: get_args(hint)[0] for name, hint in get_type_hints(CaseResult).items() if name in _GROUPS
}
"""Type of a group's members in a result (flow, queue, ping …), by its key."""

_OF_A_LINK = ("delay_p50_ms", "delay_p95_ms", "delay_p99_ms", "utilisation")
"""Metrics of a queue that need a rate of its own, which a class does not have."""
_SOJOURN = ("sojourn_p50_ms", "sojourn_p95_ms", "sojourn_p99_ms")
_PLAIN = ("pfifo", "bfifo", "pfifo_fast", "tbf", "hhf")
"""Disciplines of every kernel that mark no packet, and of which no sojourn time is measured."""

_HARM = ("harm_rate", "harm_delay", "harm_loss")
_OF_SEVERAL = ("jain", "converged_s", "starvation", "loss_synchronisation")
"""Metrics of all flows together."""

_NEVER = {
    "jain": "no two flows ran together for a second",
    "converged_s": "the flows never shared fairly",
    "loss_synchronisation": "no flow lost a packet while all ran",
    "rpm": "no ping ran beside a flow",
    "recovery_s": "the flow never had half its former goodput again",
    **dict.fromkeys(_HARM, "the flow was never alone for 2 s, and then 2 s beside other traffic"),
    "fct_mean_s": "a flow of a fixed size was not done before the end",
    "fct_max_s": "a flow of a fixed size was not done before the end",
    "marks": "the discipline counts no marks",
    "lost": "the link counts no losses",
    "self_inflicted_delay_ms": "the link did not move",
    **dict.fromkeys(_SOJOURN, "the kernel's disciplines do not measure it"),
}
"""Why a run may not have measured a metric, by its last part."""


def metrics_of(result: CaseResult) -> dict[str, float]:
    """Return every number measured in a run by its path; members of lists by id or link."""
    return dict(_numbers(result, ""))


def identity_of(result: CaseResult) -> dict[str, Any]:
    """Return the run's identity and whether to trust it, by the columns of tables of runs."""
    return {
        "case": result.name,
        "repeat": result.repeat,
        "attempt": result.attempt,
        "machine": result.machine,
        "trustworthy": result.health.trustworthy,
        "errors": len(result.errors),
    }


def why_unmeasured(metric: str, runs: Sequence[CaseResult]) -> str:
    """Return why these runs, which could have measured a metric, did not."""
    group, _, rest = metric.partition(".")
    member, _, field = rest.rpartition(".")
    if not runs:
        return "no run was completed without errors"
    if group in _MEMBERS and not any(
        name == member or member.startswith(f"{name}.")
        for run in runs
        for name, _ in _members(getattr(run, group))
    ):
        return f"{member} never started" if group != "queues" else f"{member} was never sampled"
    if group == "checkpoint":
        return "no flow of a fixed size was done before the end"
    if (kind := _KINDS.get(group)) is not None:
        if kind.needs.get(field, ("", ""))[0] == "monitor":
            return f"the packets of {member} were not followed: the log says why"
        if field in kind.unmeasured:
            return kind.unmeasured[field]
    return _NEVER.get(field if group in _MEMBERS else metric, "no sample was taken")


def check(case: Case, result: CaseResult) -> list[Check]:
    """Return all expectations of the case, held or not; one without a measured metric failed."""
    if result.interrupted or not case.expect:
        return []
    measured = metrics_of(result)
    return [_check(each, measured.get(each.metric)) for each in case.expect]


def check_metrics(scenario: Scenario) -> None:
    """Raise ``ScenarioError`` if a named metric can't be measured by any run."""
    problems: dict[str, None] = {}
    for case in scenario.cases:
        named = [("metrics", metric) for metric in case.metrics]
        named += [(each.place or "expect", each.metric) for each in case.expect]
        named += [("published", each.metric) for each in case.published]
        network = plan(case.build.topology) if named else None
        known = _reasons(case, network) if network is not None else {}
        for place, metric in named:
            if network is not None and (problem := _problem(metric, known, network)):
                problems[f"{scenario.path.name}: {place}: {problem}"] = None
    if problems:
        raise ScenarioError(*problems)


def metric_problem(metric: str, case: Case) -> str:
    """Return why no run of a case measures a metric; empty if one may."""
    network = plan(case.build.topology)
    return _problem(metric, _reasons(case, network), network)


def _problem(metric: str, known: Mapping[str, str], network: Network) -> str:
    metric = unaliased(metric, network)
    if metric not in known:
        group, _, rest = metric.partition(".")
        link = rest.rpartition(".")[0]
        links = [each.name for each in network.links]
        text = f"nothing measures {quote(metric)}"
        if group == "queues" and link in links and link not in network.observed:
            return f'{text}: add "{link}" to topology.observed'
        return text + did_you_mean(metric, [name for name, why in known.items() if not why])
    return f"nothing measures {quote(metric)}: {why}" if (why := known[metric]) else ""


def _reasons(case: Case, network: Network) -> dict[str, str]:
    """Return each metric, and why a case can't have it: empty if it may."""
    found = dict.fromkeys((name for name in _fields(CaseResult) if name not in _MEMBERS), "")
    starts = [step.command for step in case.timeline]
    flows = [each for each in starts if isinstance(each, StartFlow)]
    if len(flows) < 2:
        found |= dict.fromkeys(_OF_SEVERAL, "it needs two flows")
    if not flows:
        found |= dict.fromkeys(("goodput_bps", "rpm"), "no step starts a flow")
    elif not any(isinstance(each, StartPing) for each in starts):
        found["rpm"] = "no step starts a ping"
    if not case.sizes:
        sized = ("fct_mean_s", "fct_max_s", "checkpoint.elapsed_s", "checkpoint.ratio")
        found |= dict.fromkeys(sized, "it needs flows of a fixed size: give them bytes")
    else:
        two = "" if len(case.sizes) == 2 else "it needs exactly two flows with bytes"
        found |= {"checkpoint.elapsed_s": "", "checkpoint.ratio": two}
        found |= {f"checkpoint.bytes.{each.flow}": "" for each in flows}
    for command in starts:
        kind = started_by(command)
        if kind is not None and (name := kind.name_of(command)) is not None:
            fields = dict.fromkeys(_fields(_MEMBERS[kind.group]), "")
            needs = kind.needs.items()
            fields |= {each: why for each, (key, why) in needs if not getattr(command, key)}
            found |= {f"{kind.group}.{name}.{field}": why for field, why in fields.items()}
        if isinstance(command, StartFlow):
            reaction = f"reactions.{command.flow}"
            found |= {f"{reaction}.{each}": "" for each in _fields(Reaction)}
            found |= {f"{reaction}.{each}": why for each, why in _unprovoked(starts)}
            for number in range(1, command.subflows + 1) if command.mptcp else ():
                subflow = f"flows.{command.flow}.subflows.{command.flow}/{number}"
                found |= {f"{subflow}.{each}": "" for each in _fields(Subflow)}
    found |= _of_queues(case, network)
    for link in network.links:
        fields = dict.fromkeys(_fields(InterfaceResult), "")
        found |= {f"interfaces.{link.interface}.{field}": "" for field in fields}
    ends = {f"{src}->{dst}" for src, dst in (ends_of(each, network) for each in flows)}
    alone = "all flows have the same ends" if len(ends) < 2 else ""
    for way in ends:
        found |= {f"directions.{way}.{each}": alone for each in _fields(DirectionResult)}
    return found


def _unprovoked(steps: Sequence[Command]) -> Iterator[tuple[str, str]]:
    """Yield the reactions that no step of a timeline provokes, with the reason."""
    kinds = [kind for step in steps if (kind := started_by(step)) is not None and kind.fills]
    if len(kinds) < 2:
        for each in (*_HARM, "starved"):
            yield each, "it needs other traffic beside the flow"
    links = [step for step in steps if isinstance(step, SetLink)]
    if all(each.rate is None and each.delay_us is None for each in links):
        yield "settling_s", "no step changes the rate or the delay of a link"
    if not any(each.down or each.loss == 1 for each in links):
        for each in ("recovery_s", "silent_retransmits"):
            yield each, "no step takes a link down, or loses all its packets"


def _of_queues(case: Case, network: Network) -> dict[str, str]:
    """Return the metrics of the observed queues and their classes, each with why it can't be."""
    found: dict[str, str] = {}
    kinds, marks, classes = _queues_of(case, network)
    plain = "" if kinds - set(_PLAIN) else f"{' and '.join(sorted(kinds))} "
    for link in network.observed:
        fields = dict.fromkeys(_fields(QueueResult), "")
        if plain:
            fields |= dict.fromkeys(
                _SOJOURN, f"{plain}does not measure it: a kind such as codel.py does"
            )
            if not marks:
                fields["marks"] = f"{plain}marks no packet"
        found |= {f"queues.{link}.{field}": why for field, why in fields.items()}
        for name in classes.get(link, ()):
            own = fields | dict.fromkeys(_OF_A_LINK, "a class has no rate of its own")
            own |= dict.fromkeys(_SOJOURN, "it is not measured in classes")
            found |= {f"queues.{link} {name}.{field}": why for field, why in own.items()}
    return found


def _queues_of(case: Case, network: Network) -> tuple[set[str], bool, dict[str, list[str]]]:
    """Return the kinds of all queues of a case, whether a link marks, and its links' classes."""
    kinds, marks = {"pfifo"}, False
    classes: dict[str, list[str]] = {}

    def share(link: str | None, members: Iterable[TrafficClass]) -> None:
        names = [each.name for each in members]
        kinds.update(each.qdisc.kind for each in members if each.qdisc is not None)
        for each in network.resolve(link or BOTTLENECK):
            classes.setdefault(each.name, []).extend(names)

    for name, setting in case.build.links.items():
        kinds |= {setting.qdisc.kind} if setting.qdisc is not None else set()
        marks = marks or bool(setting.mark)
        share(name, setting.classes or ())
    for step in case.timeline:
        match step.command:
            case SetQdisc(qdisc=qdisc):
                kinds.add(qdisc.kind)
            case SetClasses(link=link, classes=members):
                share(link, members)
            case SetLink(mark=int(mark)):
                marks = marks or bool(mark)
    if kinds - set(_PLAIN):
        kinds.discard("pfifo")
    return kinds, marks, classes


def _check(expected: Expectation, value: float | None) -> Check:
    low = -float("inf") if expected.low is None else expected.low
    high = float("inf") if expected.high is None else expected.high
    return Check(
        metric=expected.metric,
        text=expected.text,
        why=expected.why,
        value=value,
        ok=value is not None and low <= value <= high,
    )


@cache
def _fields(kind: type[msgspec.Struct]) -> list[str]:
    """Return the fields of a result that can be numbers."""
    hints = {field.name: str(field.type) for field in msgspec.structs.fields(kind)}
    return [
        name
        for name, hint in hints.items()
        if name not in NO_METRICS and {"float", "int"}.intersection(re.findall(r"[\w\[]+", hint))
    ]


def metric_of(result: Any, name: str) -> float | None:
    """Return one number of ``metrics_of`` without computing the others; None if not measured.

    Names of members may contain dots.
    """
    if not name:
        known = isinstance(result, int | float) and not isinstance(result, bool)
        return result if known else None
    found = None
    for member, each in _members(result):
        if name == member or name.startswith(f"{member}."):
            inner = metric_of(each, name[len(member) + 1 :])
            found = found if inner is None else inner
    return found


def _members(value: Any) -> Iterator[tuple[str, Any]]:
    """Yield the members of a value, each with its part of the path."""
    if isinstance(value, msgspec.Struct):
        for name in value.__struct_fields__:
            if name not in NO_METRICS:
                yield name, getattr(value, name)
    elif isinstance(value, dict):
        yield from ((name, each) for name, each in value.items() if name not in NO_METRICS)
    elif isinstance(value, list):
        for each in value:
            if known := getattr(each, "id", None) or getattr(each, "link", None):
                yield known, each


def _numbers(value: Any, place: str) -> Iterator[tuple[str, float]]:
    if isinstance(value, int | float) and not isinstance(value, bool):
        yield place, value
    for member, each in _members(value):
        yield from _numbers(each, f"{place}.{member}" if place else member)
