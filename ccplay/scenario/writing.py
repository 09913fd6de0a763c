"""Writes scenarios: a session as one that repeats its actions, and flows over a given network."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

import tomlkit
from msgspec.structs import replace

from ccplay.errors import RecordingError, ScenarioError
from ccplay.model.commands import Build, ChangeMark, Mark, RemoveMark
from ccplay.model.events import Applied, Hello
from ccplay.model.network import BOTTLENECK, Topology
from ccplay.model.quantities import Plain
from ccplay.model.texts import write_line
from ccplay.model.topologies import TOPOLOGIES, describe_topology, plan
from ccplay.model.values import LinkSetting
from ccplay.scenario.document import Mistakes, Place, spell
from ccplay.scenario.keys import CLASSES, LINK
from ccplay.scenario.reading import parse
from ccplay.scenario.rules import admitted, option
from ccplay.scenario.timeline import STEP, check_classes, check_timeline, read_timeline
from ccplay.scenario.tree import Reader, locate
from ccplay.scenario.values import Scenario
from ccplay.state.lab_state import LabState
from ccplay.stream.wire import printable
from ccplay.units import write_frequency, write_seconds

_DEFAULT_CC = "cubic"
"""Default congestion control of a scenario's hosts."""


def write(state: LabState, *, title: str = "", until: float | None = None) -> str:
    """Return the scenario of a session, or of its part up to the moment ``until``.

    Each command that took effect becomes a step at its moment, except the reload of a saved
    algorithm. A command that a scenario can't express becomes a comment with the reason.

    Raises ``RecordingError`` if the network was never ready, and ``ScenarioError`` if no scenario
    can express it.
    """
    hello, ready_at = state.hello, state.ready_at
    end = state.now if until is None else until
    if hello is None or ready_at is None or ready_at > end:
        raise RecordingError("the network is not ready yet: there is nothing to save")
    build = hello.build or _guess(state, hello.network.topology, ready_at)
    done = [each for each in _done(state) if each.t <= end and not each.renewed]
    duration_s = float(max(math.ceil(round(end - ready_at, 3)), 1))
    steps = [step(each, ready_at) for each in done]
    head = "\n".join(
        [
            f"title = {toml(write_line(printable(title)) if title.strip() else 'A session')}",
            f"duration = {toml(write_seconds(duration_s))}",
            "",
            *network(build),
            "\n",
        ]
    )
    with admitted(build.algorithms, build.disciplines) as own:
        head = "\n".join([*_origin(hello, own), head])
        _prove(head)
        text = head + "\n".join([*_timeline(steps, duration_s, build), ""])
        _prove(text)
    return text


def _done(state: LabState) -> list[Applied]:
    """Return the commands, with the marks in their final state."""
    done: dict[int | str, Applied] = {}
    for number, each in enumerate(state.applied):
        match each.command:
            case Mark(text=text, at=at, name=name):
                mark = replace(each, command=Mark(text=text))
                done[name or number] = mark if at is None else replace(mark, t=at, took_s=0.0)
            case ChangeMark(name=name, text=text, at=at) if name in done:
                mark = done[name] if at is None else replace(done[name], t=at, took_s=0.0)
                done[name] = mark if text is None else replace(mark, command=Mark(text=text))
            case RemoveMark(name=name):
                done.pop(name, None)
            case ChangeMark():
                pass
            case _:
                done[number] = each
    return sorted(done.values(), key=lambda each: each.t)


def _prove(text: str) -> None:
    """Read the written text, so that its mistakes are found now rather than by its reader."""
    try:
        parse(text, Path("scenario"))
    except ScenarioError as error:
        raise ScenarioError(f"this session can't be written as a scenario: {error}") from None


def step(applied: Applied, ready_at: float) -> dict[str, Plain]:
    """Return a command that took effect as a step of a timeline, its moment in milliseconds."""
    command = applied.command
    # The moment at which the command was given, before iperf3 took its time to start.
    at_s = max(round(applied.t - applied.took_s - ready_at, 3), 0.0)
    written: dict[str, Plain] = {
        "at": write_seconds(at_s),
        "do": str(command.__struct_config__.tag),
    }
    written |= STEP.write(command)
    return written


# --- the network ----------------------------------------------------------------------------


def _guess(state: LabState, topology: Topology, ready_at: float) -> Build:
    """Return the network requested in a recording that is too old to contain it."""
    links = {}
    for name, changes in state.links.items():
        built = [each.setting for each in changes if each.t <= ready_at]
        if built:
            # Both were given to the kernel, and 0 means none.
            links[name] = replace(
                built[-1], jitter_us=built[-1].jitter_us or None, loss=built[-1].loss or None
            )
    observed = state.hello.network.observed if state.hello else []
    settings = [links.get(name) for name in observed]
    if settings and settings[0] is not None and settings.count(settings[0]) == len(settings):
        links = {BOTTLENECK: settings[0]} | {
            name: setting for name, setting in links.items() if name not in observed
        }
    defaults = {each.host: each.cc for each in state.host_changes if each.t <= ready_at}
    return Build(
        topology=topology,
        links=links,
        congestion_controls={host: cc for host, cc in defaults.items() if cc != _DEFAULT_CC},
        sample_hz=state.hello.sample_hz if state.hello else 50.0,
    )


def network(build: Build) -> Iterator[str]:
    """Yield the lines of a scenario file that describe a network."""
    yield from _topology(build.topology)
    for link, setting in build.links.items():
        yield f"{spell(('links', link))} = {_link(setting)}"
    for host, cc in build.congestion_controls.items():
        yield f"{spell(('hosts', host, 'cc'))} = {toml(cc)}"
    default = Build()
    if build.sample_hz != default.sample_hz:
        yield f"sampling = {toml(write_frequency(build.sample_hz))}"
    if build.seed != default.seed:
        yield f"seed = {build.seed}"


def _topology(topology: Topology) -> Iterator[str]:
    if (written := topology.written) is not None:
        yield 'topology.kind = "written"'
        if written.name:
            yield f"topology.name = {toml(written.name)}"
        if written.remarks:
            yield f"topology.remarks = {toml([*written.remarks])}"
        yield f"topology.hosts = {toml([*written.hosts])}"
        yield f"topology.routers = {toml([*written.routers])}"
        yield "topology.links = ["
        for ends in written.cables:
            yield f"  {{ ends = {toml([*ends])} }},"
        yield "]"
        if written.observed:
            yield f"topology.observed = {toml([*written.observed])}"
        return
    table: dict[str, Plain] = {"kind": topology.kind}
    known = TOPOLOGIES[topology.kind].parameters if topology.kind in TOPOLOGIES else ()
    for each in known:
        if each.name == "pairs" or each.name in topology.parameters:
            table[each.name] = topology.parameter(each.name, each.default)
    if topology.observed:
        table["observed"] = [*topology.observed]
    yield f"topology = {toml(table)}"


def _link(setting: LinkSetting) -> str:
    written = LINK.write(setting)
    if setting.classes is None:
        return toml(written)
    del written["classes"]
    # An inline table must be on one line, but a list in it may span several.
    listed = "".join(f"  {toml(CLASSES.of.write(each))},\n" for each in setting.classes)
    before = toml(written).removesuffix("}").rstrip()
    return f"{before}{', ' if written else ' '}classes = [\n{listed}] }}"


# --- the timeline ---------------------------------------------------------------------------


def _timeline(
    steps: Sequence[Mapping[str, Plain]], duration_s: float, build: Build
) -> Iterator[str]:
    if not steps:
        yield "timeline = []"
        return
    refused = _refused(steps, duration_s, build)
    # Aligned, so that moments and actions form columns.
    width = max(len(str(each["at"])) for each in steps)
    yield "timeline = ["
    for number, each in enumerate(steps):
        gap = " " * (width - len(str(each["at"])))
        rest = {key: value for key, value in each.items() if key != "at"}
        line = f"{{ at = {toml(each['at'])},{gap} {toml(rest).removeprefix('{ ')},"
        if number in refused:
            yield f"  # {printable(refused[number])}:"
            line = f"# {line}"
        yield f"  {line}"
    yield "]"


class _Refusals(Mistakes):
    """Mistakes in a timeline, by the number of the step."""

    def __init__(self) -> None:
        super().__init__("", "")
        self.why: dict[int, str] = {}

    def add(self, place: Place, text: str) -> None:
        """Record the first mistake of a step."""
        super().add(place, text)
        if len(place) > 1 and isinstance(place[1], int):
            self.why.setdefault(place[1], text)


def _refused(
    steps: Sequence[Mapping[str, Plain]], duration_s: float, build: Build
) -> dict[int, str]:
    """Return the steps that a scenario can't contain, by number, with the reason."""
    refused: dict[int, str] = {}
    while True:
        kept = [number for number in range(len(steps)) if number not in refused]
        found = _Refusals()
        node = locate([dict(steps[number]) for number in kept], ("timeline",))
        drafts = read_timeline(node, duration_s, Reader(found))
        planned = plan(build.topology)
        check_timeline(drafts, planned, found)
        check_classes(drafts, build.links, planned, found)
        if not found.why:
            return refused
        # Steps that refer to an omitted step are refused in the next round.
        refused |= {kept[number]: why for number, why in found.why.items()}


# --- text -----------------------------------------------------------------------------------


def _origin(hello: Hello, own: Sequence[str]) -> Iterator[str]:
    try:
        moment = datetime.fromtimestamp(hello.wall_time, UTC)
    except (OverflowError, ValueError, OSError):
        when = ""
    else:
        when = f" of {moment:%Y-%m-%d %H:%M} UTC"
    kernel = printable(hello.capabilities.kernel)
    yield f"# Session{when}: Linux {kernel}, ccplay {printable(hello.version)}."
    yield "# Moments count from when the network was ready."
    for file in own:
        what = option(file).removeprefix("--")
        name = file.partition(".")[0]
        yield f"# {name} is your own {what}: run this with {option(file)} {file}"
    yield ""


def toml(value: Plain) -> str:
    """Return a value as TOML in one line."""
    if isinstance(value, dict):
        pairs = (f"{spell((key,))} = {toml(each)}" for key, each in value.items())
        return f"{{ {', '.join(pairs)} }}"
    if isinstance(value, list):
        return f"[{', '.join(toml(each) for each in value)}]"
    return tomlkit.item(value).as_string()


# --- the default scenario for a network that is given without one ---------------------------

MOST_FLOWS = 4
"""Largest number of flows, each from one of the first hosts to its peer."""


def trial(topology: str, settings: Sequence[str] = ()) -> Scenario:
    """Return a scenario for a network: a flow from each of the first hosts to its peer.

    ``topology`` is a value of TOML, ``settings`` are as in ``--set``. Raises ``ScenarioError``.
    """
    path = Path("network.toml")
    head = f'duration = "20 s"\ntopology = {topology}\n'
    build = parse(head, path, settings).cases[0].build
    planned = plan(build.topology)
    senders = [host for host in planned.senders if planned.peer(host)][:MOST_FLOWS]
    steps = [
        f'  {{ at = "0 s", do = "start-flow", flow = "{number}", src = {toml(host)}, '
        f"dst = {toml(planned.peer(host))} }},\n"
        for number, host in enumerate(senders, start=1)
    ]
    title = toml(describe_topology(build.topology))
    text = f"title = {title}\n{head}timeline = [\n{''.join(steps)}]\n"
    return replace(parse(text, path, settings), text=text)
