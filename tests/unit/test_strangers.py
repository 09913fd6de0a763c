"""Any recording is read, or refused with its line, in bounded time and memory."""

import contextlib
import json
import os
import random
import re
import shutil
import subprocess
import sys
import textwrap
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from ccplay import cli
from ccplay.analysis.summary import machine, summarise
from ccplay.cli import main
from ccplay.cli.runs import gather
from ccplay.errors import CcplayError, RecordingError, ScenarioError, WireError
from ccplay.experiment.plan import CollectedRuns, plan_runs
from ccplay.experiment.store import Store, indexed, read_run_directory
from ccplay.model import blocks
from ccplay.model.events import Log
from ccplay.model.samples import QdiscRows, Sweep, Sweeps, TcpRows, TcpSamples
from ccplay.report.data import export
from ccplay.report.data.export import TABLES
from ccplay.report.data.report_tables import tables
from ccplay.report.page.report_directory import overviews
from ccplay.scenario.reading import parse
from ccplay.scenario.values import Scenario
from ccplay.session.archive import read_recording
from ccplay.share import frames
from ccplay.state.lab_state import LabState
from ccplay.state.samples import QUEUE_SERIES
from ccplay.stream import wire
from ccplay.stream.sources import (
    KEPT,
    MOST_BYTES,
    MOST_QUEUES,
    OF_FLOW,
    OF_QUEUE,
    OF_SEGMENT,
    RecordingLimits,
)
from ccplay.stream.wire import UnknownEvent
from ccplay.traffic.connections import FLOW_SERIES
from ccplay.ui import preferences
from ccplay.visible import control_in
from tests.events import HELLO, PLAYGROUND, qdisc, tcp
from tests.unit.lesson.test_reading import HEAD, PAGES
from tests.unit.mutants import changed, mutants, real_lines

HELLO_LINE = wire.encode(HELLO)
FLOW = {"event": "flow-started", "t": 1, "src": "a", "dst": "b", "cc": "x", "port": 1}
MANY_LINKS = {"do": "build", "links": {str(n): {} for n in range(1001)}}
SWEEP = {"event": "sweep", "t": 2.0}
BLOCK = {"event": "sweeps", "t": 1.0, "after_us": [20_000] * 3}


def recording(path: Path, records: Iterable[object], hello: bytes = HELLO_LINE) -> Path:
    """Write a recording of these records, of which bytes are lines as they are; return its path."""
    lines = (
        each if isinstance(each, bytes) else json.dumps(each).encode() + b"\n" for each in records
    )
    path.write_bytes(hello + b"".join(lines))
    return path


def flow(name: object, t: float = 1.0) -> dict[str, Any]:
    return FLOW | {"flow": str(name), "t": t}


def ended(name: object, t: float = 2.0) -> dict[str, Any]:
    numbers = {"bytes": 1, "duration_s": 1.0, "retransmits": 0}
    return {"event": "flow-ended", "t": t, "flow": str(name), **numbers}


def of_flow(field: str, row: object) -> dict[str, Any]:
    return BLOCK | {"tcp": {"flow": ["1"], "cc": ["x"], "fields": {field: [row]}}}


def hello(**changes: object) -> bytes:
    return json.dumps(json.loads(HELLO_LINE) | changes).encode() + b"\n"


@pytest.mark.parametrize(
    ("records", "reason"),
    [
        ([SWEEP, SWEEP | {"t": 1.0}], "x:4: time goes back, from 2.000000 to 1.000000 s"),
        ([SWEEP | {"t": -1.0}], "x:3: not an event"),
        ([b'{"event":"ready","t":1e400}\n'], "x:3: "),
        ([SWEEP | {"t": 1e12}], "x:3: "),
        ([BLOCK | {"after_us": 20_000}], "x:3: event 'sweeps'"),
        ([BLOCK | {"after_us": [-1]}], "x:3: event 'sweeps'"),
        ([{"event": "ping-sample", "t": 1, "ping": "p", "seq": 1, "rtt_us": 1e300}], "x:3: "),
        ([flow("1/2")], "x:3: event 'flow-started'"),
        ([flow(1) | {"streams": 10**9}], "x:3: event 'flow-started'"),
        ([flow(n) | {"streams": 128} for n in range(2, 99)], "x:81: more than"),
        ([b'{"event":"ready","t":1,"x":' + b"[" * 100_000 + b"\n"], "x:3: "),
        ([b'{"event":"log","t":1,"level":"info","text":"\xff"}\n'], "x:3: "),
        ([b'{"event":"log","t":1,"level":"info","text":"\\ud800"}\n'], "x:3: "),
        ([b"\x1b]0;owned\x07\n"], r"x:3: not an event: �\]0;owned�"),
        ([b"\n"], "x:3: not an event"),
        ([of_flow("ca_state", 7)], "x:3: .*ca_state 7 is not 0 to 4"),
        ([of_flow("ca_state", [4, 0, 1, 0])], "x:3: .*ca_state 5 is not 0 to 4"),
        ([of_flow("ca_state", {"0": 0, "2": 5})], "x:3: .*ca_state 5 is not 0 to 4"),
        ([of_flow("ca_state", [None, 3, None, 2])], "x:3: .*ca_state 5 is not 0 to 4"),
        ([of_flow("ca_state", [-1, 0, 0, 0])], "x:3: .*ca_state: a count below 0"),
        ([of_flow("cwnd", [5, -3, -3, 9])], "x:3: .*cwnd: a count below 0"),
        ([of_flow("cwnd", [None, 2, None, -3])], "x:3: .*cwnd: a count below 0"),
        ([{"event": "ca-state-changed", "t": 1, "flow": "1", "ca_state": 5}], "x:3: .*ca_state"),
        (
            [{"event": "log", "t": 1, "level": "info", "text": "x" * (1 << 20)}],
            "x:3: .*a line of 1,048,",
        ),
        ([{"event": "applied", "t": 1, "command": MANY_LINKS}], "x:3: .*length <= 1000"),
    ],
)
def test_what_would_lead_the_reader_astray_is_refused_with_its_line(
    tmp_path: Path, records: list[object], reason: str
) -> None:
    path = recording(tmp_path / "x", [flow(1), *records])
    with pytest.raises(RecordingError, match=reason) as caught:
        read_recording(path)
    assert wire.printable(str(caught.value)) == str(caught.value)


@pytest.mark.parametrize(
    "changed", [{"wall_time": 1e300}, {"wall_time": -1.0}, {"network": {"nodes": [{}] * 2000}}]
)
def test_a_first_line_with_an_impossible_value_is_refused_with_the_reason(
    tmp_path: Path, changed: dict[str, object]
) -> None:
    path = recording(tmp_path / "x", [], hello(**changed))
    with pytest.raises(RecordingError, match=r"x:1: event 'hello': .* at `\$"):
        read_recording(path)


def test_queues_are_bounded(tmp_path: Path) -> None:
    names = [f"l{n}" for n in range(MOST_QUEUES + 1)]
    rows = {"link": names, "kind": ["x"] * len(names), "fields": {}}
    with pytest.raises(RecordingError, match="x:2: more than 1,000 queues"):
        read_recording(recording(tmp_path / "x", [BLOCK | {"qdisc": rows}]))


def test_a_line_without_end_is_not_read_to_its_end(tmp_path: Path) -> None:
    path = tmp_path / "x"
    with path.open("wb") as file:
        file.truncate(10**12)
    with pytest.raises(RecordingError, match="longer than"):
        read_recording(path)
    with pytest.raises(RecordingError, match="not a regular file"):
        read_recording(Path("/dev/zero"))


# --- memory -------------------------------------------------------------------------------------

_LEAN = """
    import resource, sys
    from pathlib import Path
    from ccplay.errors import RecordingError
    from ccplay.session.archive import read_recording
    resource.setrlimit(resource.RLIMIT_AS, (400 << 20, 400 << 20))
    try:
        read_recording(Path(sys.argv[1]))
    except RecordingError as error:
        print(error)
    else:
        print("read")
"""


@pytest.mark.parametrize(
    ("head", "part", "reason"),
    [
        (b'{"event":"sweeps","t":1,"after_us":[],"x":[', b"[],", "arrays and objects in a line"),
        (b'{"event":"sweeps","t":1,"after_us":[', b"1,", "sweeps in a block"),
        (b'{"event":"sweeps","t":1,"after_us":[],"own":{"v":[', b"[1],", "arrays and objects"),
        (b'{"event":"eclipse","t":1,"x":[', b"[],", "a line of"),
        (b'{"event":"sweeps","t":1,"after_us":[],"\\u0078":[', b"1.0,", "a line of"),
    ],
)
def test_a_long_line_takes_little_memory(
    tmp_path: Path, head: bytes, part: bytes, reason: str
) -> None:
    """A line of 16 MB of the smallest values is refused in under 400 MB of address space."""
    path = tmp_path / "x"
    times = (wire.LONGEST_LINE - 100) // len(part)
    path.write_bytes(HELLO_LINE + head + (part * times)[:-1] + b"]}" + b"\n")
    argv = [sys.executable, "-c", textwrap.dedent(_LEAN), str(path)]
    said = subprocess.run(argv, stdout=subprocess.PIPE, check=True, text=True).stdout
    assert f"{path}:2: " in said
    assert reason in said


def test_a_longer_line_is_not_read_at_all(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(HELLO_LINE + b'{"event":"log","t":1,"x":"' + b"x" * (60 << 20) + b'"}\n')
    argv = [sys.executable, "-c", textwrap.dedent(_LEAN), str(path)]
    said = subprocess.run(argv, stdout=subprocess.PIPE, check=True, text=True).stdout
    assert "the line after it is longer than 16,777,216 bytes" in said


def test_the_bound_counts_what_the_state_keeps() -> None:
    """The counted bytes equal those of the state's series, for two blocks of 500 and a gap."""
    state, bounds = LabState(), RecordingLimits()
    assert 4 * len(FLOW_SERIES) == OF_FLOW
    assert 4 * len(QUEUE_SERIES) == OF_QUEUE
    assert 4 * len(blocks.TRACE_FIELDS) + 8 == OF_SEGMENT
    names = ["1", "2", "3"]
    tcp = TcpRows(flow=names, cc=["x"] * 3, fields={name: [0] * 3 for name in FLOW_SERIES})
    qdisc = QdiscRows(link=["l"], kind=["k"], fields={name: [0] for name in QUEUE_SERIES})
    own: dict[str, Any] = {"bbr_bw_bps": [1, None, 2]}
    events = [
        *(wire.decode_event(json.dumps(flow(name)).encode()) for name in names),
        Sweeps(t=1.0, after_us=[1] * 499, tcp=tcp, qdisc=qdisc, own=own),
        Sweeps(t=2.0, after_us=[1] * 999),
        Sweeps(t=3.0, after_us=[1] * 499, tcp=tcp, qdisc=qdisc, own=own),
    ]
    for event in events:
        bounds.check(event)
        state.apply(event)
    kept = [series for each in state.queues.values() for series in each.series.values()]
    for each in state.flows.values():
        kept += [*each.series.values(), *each.own.values()]
    assert bounds._bytes == sum(len(series._values) * 4 for series in kept)


def test_a_few_scalars_do_not_fill_the_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ccplay.stream.sources.MOST_BYTES", 1 << 20)
    tcp = {"flow": ["1"], "cc": ["x"], "fields": {"cwnd": [0]}}
    many = ({"event": "sweeps", "t": n, "after_us": [1] * 999, "tcp": tcp} for n in range(1, 50))
    # 1 MiB has room for 26 blocks of 1,000 sweeps with 40 bytes per flow.
    with pytest.raises(RecordingError, match="x:29: its samples need more than the limit of 0 GiB"):
        read_recording(recording(tmp_path / "x", [flow(1), *many]))


# --- what real use makes ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("flows", "hz", "seconds", "variables"),
    [(8, 200, 3600, 16), (1000, 200, 60, 0), (128, 50, 3600, 0), (1, 200, 86_400, 16)],
)
def test_what_real_use_makes_stays_within_the_bounds(
    flows: int, hz: int, seconds: int, variables: int
) -> None:
    bounds, names = RecordingLimits(), [str(n) for n in range(flows)]
    qdisc = QdiscRows(link=["a", "b"], kind=["k"] * 2, fields={})
    tcp = TcpRows(flow=names, cc=["x"] * flows, fields={})
    own: dict[str, Any] = {f"v{n}": [1] * flows for n in range(variables)}
    for t in range(0, seconds, 2):
        block = Sweeps(t=t, after_us=[5000] * (2 * hz - 1), tcp=tcp, qdisc=qdisc, own=own)
        bounds.check(block)
    assert 0 < bounds._bytes < MOST_BYTES
    assert bounds._held["a"] == min(seconds * hz, KEPT)


def test_two_seconds_of_a_thousand_flows_are_a_line_that_is_read() -> None:
    flows = [str(n) for n in range(1000)]
    counts = [list(range(n * 1000, n * 1000 + 1000)) for n in (7, 12_345)]
    sweeps = []
    for n in range(100):
        columns: dict[str, Any] = dict.fromkeys(TcpSamples.__struct_fields__, counts[n % 2])
        samples = tcp(flows, **columns | {"cc": "cubic", "ca_state": n % 4})
        sweeps.append(Sweep(t=n / 50, tcp=samples, qdisc=qdisc("l", n, kind="k")))
    line = wire.encode(blocks.pack(sweeps))
    assert len(line) > 5_000_000
    assert isinstance(wire.decode_event(line), Sweeps)


# --- time, by counted work ----------------------------------------------------------------------


def calls(work: Callable[[], object]) -> int:
    """Return the number of functions that ``work`` calls, which measures time on any machine."""
    count = 0

    def count_one(_frame: object, what: str, _of: object) -> None:
        nonlocal count
        count += what in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(count_one)
    try:
        work()
    finally:
        sys.setprofile(before)
    return count


def busy(path: Path, flows: int) -> Path:
    """Write a recording in which all flows run at once; return its path."""
    sample = BLOCK | {
        "tcp": {
            "flow": [str(n) for n in range(flows)],
            "cc": ["x"] * flows,
            "fields": {name: [0] * flows for name in FLOW_SERIES},
        }
    }
    names = range(flows)
    steps = ({"event": "applied", "t": 1.0, "command": {"do": "start-flow", "flow": str(n),
              "bytes": 1}} for n in names)  # fmt: skip
    more = (sample, sample | {"t": 5.0}, *(ended(n, 6.0) for n in names))
    return recording(path, ({"event": "ready", "t": 0}, *map(flow, names), *steps, *more))


def test_work_grows_with_the_flows_and_not_with_their_square(tmp_path: Path) -> None:
    """Four times the flows take less than six times the work."""
    few, many = (busy(tmp_path / str(flows), flows) for flows in (100, 400))
    read = [calls(partial(read_recording, path)) for path in (few, many)]
    assert read[1] < 6 * read[0]
    states = [read_recording(path) for path in (few, many)]
    sums = [calls(partial(summarise, state, "x")) for state in states]
    assert sums[1] < 6 * sums[0]


def test_work_does_not_grow_with_time_that_has_no_samples(tmp_path: Path) -> None:
    """A summary's work is bounded even if the sweeps span thirty years instead of seconds."""
    states = []
    for n, factor in enumerate((1, 10**8)):
        sweeps = (
            of_flow("cwnd", 1) | {"t": t * factor, "after_us": [1] * 3} for t in (1.0, 4.0, 9.0)
        )
        flows = (flow(1, factor), flow(2, factor))
        path = recording(tmp_path / str(n), ({"event": "ready", "t": 0}, *flows, *sweeps))
        states.append(read_recording(path))
    work = [calls(partial(summarise, state, "x")) for state in states]
    # At most half a million windows are looked up; formerly each took 30 calls, 80 million in all.
    assert work[1] < 6_000_000


def test_work_does_not_grow_with_the_changes_of_a_link_times_the_flows(tmp_path: Path) -> None:
    """How flows settle and recover is looked at in a bounded number of moments."""
    states = []
    for changes in (20, 400):
        settings = (
            {"event": "link-changed", "link": "l", "t": 10.0 * n + 2, "offloads": False}
            | {"delay_engine": "none", "setting": {"rate": 10_000_000 + n, "loss": n % 2}}
            for n in range(changes)
        )
        of_flows = [flow(n) for n in range(20)]
        path = recording(
            tmp_path / str(changes), ({"event": "ready", "t": 0}, *of_flows, *settings)
        )
        states.append(read_recording(path))
    work = [calls(partial(summarise, state, "x")) for state in states]
    # Twenty times the changes took 22 times the work, 58 million calls.
    assert work[1] < 4 * work[0]


# --- changed at random --------------------------------------------------------------------------


def test_a_mutant_is_a_state_or_an_error_with_its_place(tmp_path: Path) -> None:
    path, read = tmp_path / "x", 0
    for mutant in mutants(300, seed=1):
        path.write_bytes(mutant)
        began = time.process_time()
        try:
            read_recording(path)
        except RecordingError as error:
            assert str(error).startswith(f"{path}:")  # noqa: PT017 - it need not be refused
        else:
            read += 1
        # A slow machine may take seconds; more would be a hang.
        assert time.process_time() - began < 20
    # Both must happen often, or the mutants would show little.
    assert 30 < read < 270


def test_a_mutant_is_summed_up_and_exported_as_any_recording(tmp_path: Path) -> None:
    path, done = tmp_path / "x", 0
    for number, mutant in enumerate(mutants(60, seed=2)):
        path.write_bytes(mutant)
        try:
            material = gather([path])
        except RecordingError:
            continue
        written = export.export(material, tmp_path / str(number), "csv", TABLES)
        done += any(rows for rows in written.values())
    assert done > 6


def test_a_recording_with_a_flipped_bit_is_refused_before_anything_is_drawn(tmp_path: Path) -> None:
    """Loading what draws takes seconds, which one bad byte must not cost."""
    content = bytearray(PLAYGROUND.read_bytes())
    content[len(content) // 2] ^= 0x80
    (tmp_path / "x.ccplay").write_bytes(content)
    body = (
        "import sys; from ccplay import cli; code = cli.main(sys.argv[1:]); "
        "print(sorted({'matplotlib', 'fontTools', 'jinja2'} & sys.modules.keys())); sys.exit(code)"
    )
    argv = [sys.executable, "-c", body, "report", str(tmp_path / "x.ccplay")]
    refused = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert (refused.returncode, refused.stdout) == (4, "[]\n")
    assert re.fullmatch("ccplay: .+/x.ccplay:[0-9]+: .+\n", refused.stderr)


# --- run directories ----------------------------------------------------------------------------

_TWICE = """
repeats = 2
duration = "20 s"
topology.kind = "linear"
metrics = ["flows.1.goodput_bps", "jain"]
timeline = [{ at = "0 s", do = "start-flow" }]
"""


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> tuple[Scenario, Path]:
    """A scenario and its run directory: a real run twice, with an index, without recordings."""
    folder = tmp_path_factory.mktemp("ran")
    (folder / "mine.toml").write_text(_TWICE)
    scenario, state = parse(_TWICE, folder / "mine.toml"), read_recording(PLAYGROUND)
    where, gathering = machine(state), CollectedRuns(scenario)
    with Store(folder / "out", scenario) as store:
        for run in plan_runs(scenario):
            recording = store.recording_name(run)
            result = replace(
                summarise(state, run.case.name), repeat=run.repeat, recording=recording, jain=0.5
            )
            store.keep(run, result, where, 1.0, [])
            gathering.add(result, machine=where)
        store.sum_up(gathering.result())
    (folder / "out" / "index.parquet").write_bytes(indexed(gathering.result()) or b"")
    return scenario, folder / "out"


@pytest.mark.parametrize("name", ["result.json", "runs/mine-1.json"])
def test_a_mutant_of_a_run_directory_is_reported_or_refused(
    ran: tuple[Scenario, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    """Each command that reads one answers, or says in one line why it does not."""
    scenario, real = ran
    out, dice, codes = tmp_path / "out", random.Random(name), Counter[int]()
    whole = json.loads((real / name).read_bytes())
    shutil.copytree(real, out)
    if name != "result.json":
        # The run must count as finished since the result was written.
        lacking = json.loads((real / "result.json").read_bytes())
        lacking["cases"].pop(0)
        (out / "result.json").write_text(json.dumps(lacking))
    for _ in range(120):
        (out / name).write_text(json.dumps(changed(whole, dice)))
        for words in (
            ["compare", str(out), str(real), "--table", "--all"],
            ["compare", str(real), str(out), "--json"],
            ["export", str(out), "--table", "runs"],
        ):
            codes[code := cli.main(words)] += 1
            said = capsys.readouterr()
            assert code == 0 or re.fullmatch("ccplay: .+\n", said.err)
        with contextlib.suppress(CcplayError):
            material = gather([out])
            assert all(each.files() for each in tables(material.result))
            assert overviews(material, [], ()) is not None
        # As `ccplay run --out` resumes.
        with contextlib.suppress(CcplayError), Store(out, scenario) as store:
            gathering = CollectedRuns(scenario)
            for kept in store.finished.values():
                gathering.add(kept.result, machine=kept.machine)
            msgspec.json.encode(gathering.result())
    # Both must happen often, or the mutants would show little.
    assert codes[0] > 60
    assert codes[4] > 60


def test_the_index_of_a_run_directory_is_written_and_never_read(
    ran: tuple[Scenario, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A mutated index harms none of the commands; whoever resumes the experiment replaces it."""
    scenario, real = ran
    out, dice = tmp_path / "out", random.Random(4)
    shutil.copytree(real, out)
    content = bytearray((out / "index.parquet").read_bytes())
    for _ in range(40):
        content[dice.randrange(len(content))] ^= 1 << dice.randrange(8)
    (out / "index.parquet").write_bytes(content)
    assert gather([out]).result == gather([real]).result
    (out / "index.parquet").unlink()
    os.mkfifo(out / "index.parquet")
    assert gather([out]).result == gather([real]).result
    monkeypatch.setattr("ccplay.experiment.store.INDEXED_FROM", 1)
    result = read_run_directory(real)
    with (
        Store(out, scenario) as store,
        pytest.raises(RecordingError, match=r"index\.parquet: it is a FIFO"),
    ):
        store.index(result)


def test_mutants_are_made_of_all_kinds_of_lines() -> None:
    kinds = {json.loads(line)["event"] for line in real_lines()}
    assert {"hello", "sweeps", "flow-started", "ping-sample", "health", "ended"} <= kinds


# --- control characters -------------------------------------------------------------------------

CONTROLS = (
    *("\x1b]0;TITLE\x1b\\", "\x1b]52;c;QQ==\x07", "\x1b[?1049l", "\x1bc", "\x00", "\x08", "\r"),
    *("\x7f", "\x9b31m", "\x9d0;TITLE\x9c", "\u202e", "\u2066", "\u200f", "\u2028", "\ufeff"),
)
"""What takes a terminal, or shows other text than is there."""


def escaped(text: str) -> str:
    return "".join(f"\\u{ord(each):04x}" for each in text)


@pytest.mark.parametrize("control", CONTROLS)
def test_a_file_with_a_control_character_is_refused_with_its_line(control: str) -> None:
    lesson = HEAD + PAGES
    # Written by an escape, in a value and in a key.
    for line in lesson.splitlines():
        if line.startswith(("text = ", "why = ", "title = ", "questions = ")):
            name, _, value = line.partition(" = ")
            changed = f'{name} = "x{escaped(control)}"'
            with pytest.raises(
                ScenarioError, match=r"mine\.toml:\d+: .*control character|one line"
            ):
                parse(lesson.replace(line, changed if value else line), Path("mine.toml"))
    with pytest.raises(ScenarioError, match=r"mine\.toml:1: .*control character"):
        parse(f'"a{escaped(control)}" = 1\n{lesson}', Path("mine.toml"))
    # As it is, in a comment; a lone CR, NUL and others are no TOML.
    with pytest.raises(ScenarioError, match=r"mine\.toml:1: "):
        parse(f"# {control}x\n{lesson}", Path("mine.toml"))
    setting = f"about=x{control}y"
    with pytest.raises(ScenarioError, match="control character"):
        parse(lesson, Path("mine.toml"), [setting])
    found = preferences.parse(f'theme = "{escaped(control)}"', "config.toml", ())
    assert "control character" in found.mistakes[0]


def test_texts_in_any_script_are_read() -> None:
    text = "h\u00e4\u00a0\u4e2d \u0646\u0645\u200c\u06cc \U0001f469\u200d\U0001f52c\tx\u00ad"
    page = PAGES.replace("Read *this*.", text)
    found = parse(HEAD + page, Path("mine.toml")).lesson
    assert found is not None
    assert found.pages[0].text.startswith(text)


@pytest.mark.parametrize("control", CONTROLS)
def test_what_is_read_as_json_controls_no_terminal(control: str) -> None:
    for written in (json.dumps(f"x{control}"), json.dumps(f"x{control}", ensure_ascii=False)):
        event = f'{{"event":"log","t":1,"level":"info","text":{written}}}'.encode()
        read = wire.decode_event(event)
        assert isinstance(read, Log)
        assert read.text.startswith("x")
        assert read.text.isprintable()
        frame = frames.decode(f'{{"share":"over","reason":{written}}}'.encode())
        assert isinstance(frame, frames.Over)
        assert frame.reason.isprintable()


def hostile_recording() -> bytes:
    """Return a real recording in which every text that may be any text ends in controls."""
    lines = [json.loads(line) for line in real_lines()]
    places: dict[str, list[int]] = {}
    for number, line in enumerate(lines):
        for text in set(texts_of(line)):
            places.setdefault(text, []).append(number)
    for text in sorted(places):
        hostile = {n: renamed(lines[n], text, text + "".join(CONTROLS)) for n in places[text]}
        changed = {n: line for n, line in hostile.items() if line != lines[n]}
        # Lines of one kind have that text in the same place.
        of_kinds = {lines[number]["event"]: line for number, line in changed.items()}
        with contextlib.suppress(WireError):
            read = [wire.decode_event(json.dumps(line).encode()) for line in of_kinds.values()]
            if not any(isinstance(each, UnknownEvent) for each in read):
                lines = [changed.get(number, line) for number, line in enumerate(lines)]
    return b"".join(json.dumps(line).encode() + b"\n" for line in lines)


def texts_of(value: Any) -> Iterator[str]:
    """Yield all texts in a value; the names of fields are none: an event would lose them."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        yield from value.keys() - _FIELDS
        yield from texts_of(list(value.values()))
    elif isinstance(value, list):
        for each in value:
            if not isinstance(each, int | float):
                yield from texts_of(each)


def renamed(value: Any, text: str, new: str) -> Any:
    """Return a value with a text replaced in it."""
    if isinstance(value, dict):
        return {
            new if key == text and text not in _FIELDS else key: renamed(each, text, new)
            for key, each in value.items()
        }
    if isinstance(value, list):
        return [renamed(each, text, new) for each in value]
    return new if value == text else value


EVERY = [getattr(each, "__origin__", each) for each in wire.EVENTS]
_FIELDS = {name for kind in EVERY for name in kind.__struct_encode_fields__}
OURS = re.compile(r"\x1b\[[0-9;]*[mHCJK]|\x1b\[\?25[lh]")
"""Codes that ccplay itself sends: colours, the cursor's place and whether it is seen."""


def assert_harmless(output: str) -> None:
    left = OURS.sub("", output)
    assert control_in(left) == ""
    assert "\x1b" not in left


def test_no_output_of_a_recording_has_a_control_character(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Picture, cast, script, report, tables and exports of a hostile recording."""
    monkeypatch.chdir(tmp_path)
    path = Path("x\x1bc\x9b\u202e.ccplay")
    path.write_bytes(hostile_recording())
    name = str(path)
    for argv in (
        ["replay", name, "--picture", "5", "--out", "x.svg"],
        ["replay", name, "--cast", "x.cast", "--from", "4", "--to", "5"],
        ["report", name, "--out", "report"],
        ["export", name, "--out", "export"],
        ["script", name],
    ):
        code = main(argv)
        said = capsys.readouterr()
        assert_harmless(said.out + said.err)
        # Names such as these make no scenario.
        assert code == (3 if argv[0] == "script" else 0), (argv, said.err)
    (cast,) = tmp_path.glob("*.cast")
    for line in cast.read_text(encoding="utf-8").splitlines()[1:]:
        assert_harmless(json.loads(line)[2].replace("\x1b[2J", ""))
    written = [each for each in tmp_path.rglob("*") if each.suffix in (".svg", ".html", ".csv")]
    assert len(written) > 3
    texts = [each.read_text(encoding="utf-8") for each in written]
    assert any("\N{REPLACEMENT CHARACTER}" in each for each in texts), "the texts are there"
    for each in texts:
        assert_harmless(each)
