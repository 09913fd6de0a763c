"""What a scenario needs: a kernel that supports it, and the user's own files by name."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from msgspec.structs import replace

from ccplay.assets import SUFFIX
from ccplay.errors import UnsupportedError
from ccplay.guest import boot
from ccplay.model import disciplines, texts
from ccplay.model.disciplines import DISCIPLINES, beyond, is_software, serves
from ccplay.model.qdiscs import SOFTWARE, DisciplineKind
from ccplay.model.quantities import quote
from ccplay.model.values import Capabilities, Feature, LinkSetting, Qdisc, TrafficClass
from ccplay.scenario.values import Case, Scenario
from ccplay.state.lab_state import LabState

# --- the user's algorithms and disciplines: a scenario may use their names, but never names files -


def admit(algorithms: Iterable[str] = (), queues: Iterable[str] = ()) -> None:
    """Allow these congestion controls and disciplines in scenarios that are read from now on.

    The disciplines may have any parameters.
    """
    texts.custom_algorithms.update(algorithms)
    for name in queues:
        disciplines.custom.setdefault(name, DisciplineKind(name, "your own", (), open=True))


@contextmanager
def admitted(algorithms: Iterable[str], queues: Iterable[str] = ()) -> Iterator[list[str]]:
    """Allow the user's own files in scenarios read within the context; yield their names."""
    before, queues_before = set(texts.custom_algorithms), set(disciplines.custom)
    # A stranger's recording may have any names.
    able = _able(algorithms)
    own = [name for name in _able(queues) if name not in DISCIPLINES]
    admit(able, own)
    try:
        yield [*(f"{name}.bpf.c" for name in able), *(f"{name}.py" for name in own)]
    finally:
        texts.custom_algorithms.intersection_update(before)
        for name in set(disciplines.custom) - queues_before:
            del disciplines.custom[name]


def _able(names: Iterable[str]) -> list[str]:
    return [name for name in names if re.fullmatch(texts.NAME_PATTERN, name)]


def rerun(file: Path, state: LabState, options: Sequence[str] = ()) -> str:
    """Return the command that repeats a session saved in ``file``.

    ``options`` are the options of the command line about the lab. Without them, the user's
    algorithms and disciplines are assumed to be in the current folder.
    """
    build = state.hello.build if state.hello else None
    named = (build.algorithms, build.disciplines) if build else ((), ())
    with admitted(*named) as own:
        files = [word for name in own for word in (option(name), name)]
    return shlex.join(["ccplay", "run", str(file), *(options or files)])


def option(file: str) -> str:
    """Return the option that names one of the user's files."""
    return "--discipline" if file.endswith(disciplines.SUFFIX) else "--algorithm"


def driven(
    scenario: Scenario, algorithms: Mapping[str, str], queues: Mapping[str, str] | None = None
) -> Scenario:
    """Return the scenario with the digests of the user's algorithms and disciplines by name."""
    if not algorithms and not queues:
        return scenario
    choice = {"algorithms": dict(algorithms), "disciplines": dict(queues or {})}
    builds = [replace(case.build, **choice) for case in scenario.cases]
    cases = zip(scenario.cases, builds, strict=True)
    return replace(scenario, cases=tuple(replace(case, build=build) for case, build in cases))


# --- checks whether a kernel supports a scenario, by the capabilities that a lab reports ----------

_IN_A_FULL_KERNEL = {"queue discipline", "classifier", "congestion control"}


def check_against(scenario: Scenario, capabilities: Capabilities) -> None:
    """Raise ``UnsupportedError`` with all features missing here, with reasons and remedies."""
    lacks, kinds = _lacks(scenario, capabilities)
    if lacks:
        raise UnsupportedError(*lacks, *_guest(kinds, capabilities))


def only_in_guest(scenario: Scenario, capabilities: Capabilities) -> str | None:
    """Return what a scenario needs, this kernel lacks and a guest has; None if nothing."""
    _, kinds = _lacks(scenario, capabilities)
    if not kinds or not kinds <= _IN_A_FULL_KERNEL or boot.lack() is not None:
        return None
    return f"this kernel lacks a {' and a '.join(sorted(kinds))} that the scenario needs"


def _lacks(scenario: Scenario, capabilities: Capabilities) -> tuple[dict[str, None], set[str]]:
    """Return the missing features, each once, and their kinds."""
    lacks: dict[str, None] = {}
    kinds: set[str] = set()
    for case in scenario.cases:
        prefix = f"case {quote(case.name)}: " if len(scenario.cases) > 1 else ""
        for queue, place, shares in _queues(case):
            if lacked := _beyond_ours(queue, capabilities, shares=shares):
                lacks[f"{scenario.path.name}: {prefix}{place}: {lacked}"] = None
                kinds.add("queue discipline")
        for what, name, place in _wanted(case):
            features = {
                "queue discipline": capabilities.qdiscs,
                "classifier": capabilities.classifiers,
                "ECN marker": capabilities.markers,
                "congestion control": capabilities.congestion_controls,
                "protocol": capabilities.mptcp,
                "MPTCP scheduler": capabilities.schedulers,
            }[what]
            if (problem := _problem(what, name, features)) is not None:
                lacks[f"{scenario.path.name}: {prefix}{place}: {problem}"] = None
                kinds.add("algorithm of BPF" if name.endswith(SUFFIX) else what)
    return lacks, kinds


def guest_offer(scenario: Scenario, state: LabState) -> str:
    """Return the line that offers a guest for what a lab's kernel lacks; empty if none helps."""
    if state.hello is None:
        return ""
    capabilities = state.hello.capabilities
    return "".join(_guest(_lacks(scenario, capabilities)[1], capabilities))


def _guest(kinds: set[str], capabilities: Capabilities) -> Iterator[str]:
    """Return a hint about the guest, if the lab used this machine's kernel and a guest helps."""
    if kinds := kinds & _IN_A_FULL_KERNEL:
        what = f"this {' and '.join(sorted(kinds))}"
        if offer := boot.offer(capabilities.kernel, what, "--kernel auto"):
            yield offer


def _queues(case: Case) -> Iterator[tuple[Qdisc, str, bool]]:
    """Yield each queue, its place, and whether it shares a link's rate with others."""
    for subject, place in _subjects(case):
        if (qdisc := getattr(subject, "qdisc", None)) is not None:
            yield qdisc, place, getattr(subject, "traffic_class", None) is not None
        for each in getattr(subject, "classes", None) or []:
            if each.qdisc is not None:
                of_link = isinstance(subject, LinkSetting)
                yield each.qdisc, f"{place}.classes" if of_link else place, True


def _subjects(case: Case) -> Iterator[tuple[object, str]]:
    """Yield each setting of a link and each command, with its place."""
    yield from ((setting, f"links.{link}") for link, setting in case.build.links.items())
    yield from ((step.command, step.place) for step in case.timeline)


def _beyond_ours(queue: Qdisc, capabilities: Capabilities, *, shares: bool) -> str:
    """Return what the kernel's discipline would do and ccplay's replacement does not."""
    if is_software(queue.kind) or serves(queue.kind, capabilities.qdiscs) != SOFTWARE:
        return ""
    here = f"queue discipline {quote(queue.kind)} is not in this kernel, and ccplay's own"
    if shares:
        return f"{here} can't be the queue of a class"
    name = beyond(queue, SOFTWARE)
    return "" if name is None else f"{here} has no {name}"


def _wanted(case: Case) -> Iterator[tuple[str, str, str]]:
    """Yield kind, name and place of everything that a kernel may lack."""
    for host, cc in case.build.congestion_controls.items():
        yield "congestion control", cc, f"hosts.{host}"
    for subject, place in _subjects(case):
        of_link = isinstance(subject, LinkSetting)
        if (qdisc := getattr(subject, "qdisc", None)) is not None:
            yield "queue discipline", qdisc.kind, place
        if getattr(subject, "mark", None):
            yield "ECN marker", "threshold", f"{place}.mark" if of_link else place
        classes = getattr(subject, "classes", None) or []
        yield from _wanted_by_classes(classes, f"{place}.classes" if of_link else place)
        if getattr(subject, "mptcp", False):
            yield "protocol", "mptcp", place
            if (scheduler := getattr(subject, "scheduler", None)) is not None:
                yield "MPTCP scheduler", scheduler, place
        if (algorithm := getattr(subject, "cc", None)) is not None:
            yield "congestion control", algorithm, place


def _wanted_by_classes(classes: list[TrafficClass], place: str) -> Iterator[tuple[str, str, str]]:
    if classes:
        yield "classifier", "u32", place
    for each in classes:
        if each.qdisc is not None:
            yield "queue discipline", each.qdisc.kind, place


def _problem(what: str, name: str, features: Iterable[Feature]) -> str | None:
    there = [feature.name for feature in features if feature.available]
    if name in there:
        return None
    has = f"is not in this kernel (has: {', '.join(there)})" if there else "can't be used here"
    text = f"{what} {quote(name)} {has}"
    missing = next((feature for feature in features if feature.name == name), None)
    # The usual reason, that this kernel lacks it, is already in the message.
    explained = there and missing is not None and "this kernel" in missing.reason
    if missing is not None and missing.reason and not explained:
        text += f": {missing.reason}"
    return f"{text}; {missing.remedy}" if missing is not None and missing.remedy else text
