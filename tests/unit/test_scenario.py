"""A scenario file is read, or refused with the place of every mistake."""

import os
import re
import tomllib
from itertools import chain
from pathlib import Path

import pytest
import tomlkit
from msgspec.structs import replace

from ccplay.errors import ScenarioError, UnsupportedError, UsageError
from ccplay.guest import boot
from ccplay.model.commands import SetLink, SetQdisc
from ccplay.model.network import Topology
from ccplay.model.topologies import plan
from ccplay.model.values import Capabilities, Feature, Qdisc
from ccplay.scenario.keys import link_problem
from ccplay.scenario.library import find, shipped
from ccplay.scenario.reading import load, parse
from ccplay.scenario.rules import check_against, guest_offer, only_in_guest
from ccplay.scenario.tree import locate, overlay, plain
from ccplay.traffic import KINDS, stopped_by
from ccplay.traffic.download import StartDownload
from ccplay.traffic.flow import StartFlow
from ccplay.traffic.ping import StartPing
from tests.events import CAPABILITIES, HELLO, folded

HEAD = 'title = "T"\nduration = "60 s"\ntopology.kind = "linear"\n'
TWO = "\n[[case]]\nname = 'a'\n[[case]]\nname = 'b'"
PATH = Path("t.toml")
REFERENCE = Path(__file__).resolve().parents[2] / "docs" / "reference"


def refusal(text: str) -> str:
    """Return the message with which a file is refused."""
    with pytest.raises(ScenarioError) as caught:
        parse(text, PATH)
    return str(caught.value)


def steps(*lines: str) -> str:
    """Return a file with this timeline; its first step is on line 5."""
    return HEAD + "timeline = [\n" + "".join(f"{{ {line} }},\n" for line in lines) + "]\n"


# --- what is read ---------------------------------------------------------------------------


def test_quantities_become_the_model_s_units() -> None:
    case = parse(
        HEAD
        + """
sampling = "100 Hz"
seed = 7
links.bottleneck = { rate = "1.5 Mbit/s", delay = "10 ms", jitter = "1 ms", loss = "2 %" }
links.h1-r.rate = "unlimited"
links."r->h2".queue = { kind = "bfifo", limit = "30 kB" }
hosts.h1.cc = "reno"
""",
        PATH,
    ).case()
    build = case.build
    assert (build.sample_hz, build.seed, case.duration_s) == (100.0, 7, 60.0)
    assert build.congestion_controls == {"h1": "reno"}
    bottleneck = build.links["bottleneck"]
    assert (bottleneck.rate, bottleneck.delay_us, bottleneck.jitter_us) == (1_500_000, 10_000, 1000)
    assert bottleneck.loss == pytest.approx(0.02)
    assert build.links["h1-r"].rate == 0
    assert build.links["r->h2"].qdisc == Qdisc(kind="bfifo", options={"limit": 30_000})


def test_every_action_becomes_its_command() -> None:
    timeline = (
        parse(
            steps(
                'at = "0 s", do = "start-flow", bytes = "50 MB", duration = "5 s", streams = 3',
                'at = "1 s", do = "start-ping", interval = "500 ms", count = 10',
                'at = "1 s", do = "start-download", bytes = "177669 bytes", cc = "bbr"',
                'after = "p1", at = "1 s", do = "set-qdisc", kind = "tbf", rate = "1 Mbit/s"',
                'at = "3 s", do = "set-link", link = "r-h2", rate = "5 Mbit/s", loss = "0 %"',
                'at = "3 s", do = "set-congestion-control", flow = "1", cc = "vegas"',
                'at = "3 s", do = "set-congestion-control", host = "h2", cc = "reno"',
                'at = "4 s", do = "mark", text = "look"',
                'at = "4 s", do = "stop-flow", flow = "1"',
                'at = "4 s", do = "stop-ping", ping = "p1"',
                'at = "4 s", do = "stop-download", download = "w1"',
            ),
            PATH,
        )
        .case()
        .timeline
    )
    assert timeline[0].command == StartFlow(flow="1", bytes=50_000_000, duration_s=5.0, streams=3)
    assert timeline[1].command == StartPing(ping="p1", interval_s=0.5, count=10)
    assert timeline[2].command == StartDownload(download="w1", cc="bbr")
    assert (timeline[3].after, timeline[3].at_s, timeline[3].place) == ("p1", 1.0, "timeline[3]")
    assert isinstance(timeline[3].command, SetQdisc)
    assert timeline[3].command.qdisc.options["rate"] == 1_000_000
    assert timeline[4].command == SetLink(link="r-h2", rate=5_000_000, loss=0.0)
    assert len(timeline) == 11


def test_traffic_without_a_name_takes_the_next_that_is_free() -> None:
    text = steps(
        'at = "0 s", do = "start-flow"',
        'at = "0 s", do = "start-flow", flow = "1"',
        'at = "0 s", do = "start-flow"',
    )
    flows = [getattr(step.command, "flow", None) for step in parse(text, PATH).case().timeline]
    assert flows == ["2", "1", "3"]


def test_a_case_lies_over_what_is_common() -> None:
    """Tables of a case merge into the common ones; its lists and queues of other kinds replace."""
    scenario = parse(
        HEAD
        + """
links.bottleneck = { rate = "2 Mbit/s", queue = { kind = "pfifo", limit = 100 } }
timeline = [{ at = "1 s", do = "start-flow" }]
[[case]]
name = "as it is"
[[case]]
name = "short"
links.bottleneck.queue.limit = 20
until = "all"
[[case]]
name = "bytes"
links.bottleneck.queue = { kind = "bfifo" }
timeline = []
""",
        PATH,
    )
    common, short, other = scenario.cases
    queues = [case.build.links["bottleneck"].qdisc for case in scenario.cases]
    assert queues[:2] == [Qdisc(kind="pfifo", options={"limit": n}) for n in (100, 20)]
    assert queues[2] is not None
    assert queues[2].kind == "bfifo"
    assert short.build.links["bottleneck"].rate == 2_000_000
    assert (common.until, short.until) == ("duration", "all")
    assert (len(common.timeline), len(other.timeline)) == (1, 0)
    assert short.title == "T: short"
    assert [case.name for case in scenario.only(["bytes", "short"]).cases] == ["short", "bytes"]
    assert scenario.case("short") == short
    with pytest.raises(UsageError, match='did you mean "short"'):
        scenario.only(["shrot"])
    with pytest.raises(UsageError, match="one case"):
        scenario.case("short", "bytes")


@pytest.mark.parametrize("name", sorted(shipped()))
def test_shipped_scenarios_are_right(name: str) -> None:
    assert load(find(name)).cases


def test_the_examples_of_the_documentation_are_right() -> None:
    """The first example is a complete file; the others are valid as changes to it."""
    pages = (REFERENCE / name for name in ("scenarios.md", "experiments.md"))
    texts = (re.findall(r"```toml\n(.*?)```", page.read_text(), re.DOTALL) for page in pages)
    whole, *others = map(tomllib.loads, chain.from_iterable(texts))
    parts = [each for each in others if "duration" not in each]
    assert len(parts) >= 4
    for part in parts:
        tree = plain(overlay(locate(whole), locate(part)))
        assert all(case.timeline for case in parse(tomlkit.dumps(tree), PATH).cases), part


def test_the_playground_is_over_within_a_minute_and_leaves_traffic_running() -> None:
    (case,) = load(find("playground")).cases
    assert case.duration_s < 60
    flows = [step.command for step in case.timeline if isinstance(step.command, StartFlow)]
    assert not any(KINDS["flow"].ends(flow) for flow in flows)
    assert not any(stopped_by(step.command) for step in case.timeline)


def test_windows_line_ends_and_a_byte_order_mark_are_fine(tmp_path: Path) -> None:
    path = tmp_path / "w.toml"
    path.write_bytes(b"\xef\xbb\xbf" + HEAD.replace("\n", "\r\n").encode())
    assert load(path).title == "T"


# --- what is refused ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("step", "said"),
    [
        (
            'at = "0 s", do = "start-flow", cc = "cubik"',
            't.toml:5: timeline[0].cc: unknown congestion control "cubik"; did you mean "cubic"?',
        ),
        ('at = "0 s", do = "start-flow", cc = 3', "unknown congestion control 3"),
        ('at = "0 s", do = "strat-flow"', 'did you mean "start-flow"?'),
        ('at = "0 s"', "do is missing"),
        ('do = "start-flow"', 'at is missing: when to do it, such as at = "2 s"'),
        ('at = 2, do = "start-flow"', '2 has no unit: write a time such as "20 s"'),
        ('at = "2", do = "start-flow"', '"2" is not a time such as "20 s"'),
        ('at = "-2 s", do = "start-flow"', '"-2 s" is not a time'),
        ('at = "2 Mbit/s", do = "start-flow"', "is not a time"),
        ('at = "61 s", do = "start-flow"', "is later than the end, 60 s"),
        ('at = "9e9 s", do = "start-flow"', "is not a time"),
        pytest.param(f'at = "{"9" * 400} s", do = "start-flow"', "is not a time", id="infinite"),
        ('at = "99999999999999999999 s", do = "start-flow"', "must be from 0 µs to 24 h"),
        ('at = "0 s", do = "start-flow", flwo = "1"', 'unknown key; did you mean "flow"?'),
        ('at = "0 s", do = "start-flow", flow = 1', 'such as "1"'),
        ('at = "0 s", do = "start-flow", flow = "a b"', "is not a name"),
        ('at = "0 s", do = "start-flow", flow = "1/2"', "is not a name"),
        ('at = "0 s", do = "start-flow", src = "h3"', 'there is no host "h3"'),
        ('at = "0 s", do = "start-flow", src = "r"', '"r" is a router; hosts are h1, h2'),
        ('at = "0 s", do = "start-flow", src = "h1", dst = "h1"', 'src and dst are both "h1"'),
        ('at = "0 s", do = "start-flow", streams = 0', "from 1 to 128, not 0"),
        ('at = "0 s", do = "start-flow", streams = 1.5', "a whole number"),
        ('at = "0 s", do = "start-flow", streams = true', "a whole number"),
        ('at = "0 s", do = "start-flow", bytes = 5', 'a size such as "50 MB"'),
        ('at = "0 s", do = "start-flow", bytes = "0 B"', "must be from 1 B to 1000 GB"),
        ('at = "0 s", do = "start-flow", duration = "0 s"', "must be from 1 µs to 24 h"),
        ('at = "0 s", do = "stop-flow", flow = "1"', 'no flow "1" is ever started'),
        ('at = "0 s", do = "stop-flow"', 'flow is missing for "stop-flow"'),
        ('at = "0 s", do = "stop-ping", ping = "p1"', 'no ping "p1"'),
        ('after = "w1", do = "mark", text = "x"', 'nothing named "w1" is ever started'),
        ('at = "0 s", do = "mark", text = ""', "one line of text"),
        ('at = "0 s", do = "mark", text = "a\\nb"', "one line of text"),
        ('at = "0 s", do = "mark"', "text is missing"),
        ('at = "0 s", do = "set-link"', "changes nothing"),
        ('at = "0 s", do = "set-link", link = "h1-h2", rate = "1 Mbit/s"', "there is no link"),
        ('at = "0 s", do = "set-link", rate = "5 kbit/s"', "8 kbit/s to 1 Gbit/s, not 5 kbit/s"),
        ('at = "0 s", do = "set-link", rate = "10 Gbit/s"', "not 10 Gbit/s"),
        ('at = "0 s", do = "set-link", rate = "10 ms"', '"10 ms" is not a rate'),
        ('at = "0 s", do = "set-link", rate = "unlimited"', "needs a rate"),
        (
            'at = "0 s", do = "set-link", loss = 0.02',
            '0.02 has no unit: write a share such as "2 %"',
        ),
        ('at = "0 s", do = "set-link", loss = "0.02"', "is not a share"),
        ('at = "0 s", do = "set-link", loss = "200 %"', "is not a share"),
        ('at = "0 s", do = "set-link", delay = "1 min"', "must be from 0 µs to 10 s"),
        ('at = "0 s", do = "set-link", delay = nan', "nan has no unit"),
        ('at = "0 s", do = "set-qdisc"', "kind is missing"),
        ('at = "0 s", do = "set-qdisc", kind = "pfifi"', 'did you mean "pfifo"'),
        ('at = "0 s", do = "set-qdisc", kind = "pfifo", limt = 3', 'did you mean "limit"'),
        ('at = "0 s", do = "set-qdisc", kind = "pfifo", limit = 0', "must be from 1 packets"),
        (
            'at = "0 s", do = "set-qdisc", kind = "pfifo", limit = inf',
            "must be a number of packets",
        ),
        ('at = "0 s", do = "set-qdisc", kind = "bfifo", limit = 30000', "30000 has no unit"),
        ('at = "0 s", do = "set-qdisc", kind = "codel", target = 5', "5 has no unit"),
        ('at = "0 s", do = "set-qdisc", kind = "tbf"', "tbf needs rate"),
        ('at = "0 s", do = "set-congestion-control", cc = "bbr"', "either a flow"),
        ('at = "0 s", do = "set-congestion-control", flow = "1", cc = "bbr"', 'no flow "1"'),
        ('at = "0 s", do = "build"', 'unknown action "build"'),
        ("", "do is missing"),
    ],
)
def test_a_wrong_step_is_refused_with_its_line(step: str, said: str) -> None:
    message = refusal(steps(step))
    assert said in message
    assert "t.toml:5: timeline[0]" in message


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (
            (
                'at = "0 s", do = "start-flow", flow = "1"',
                'at = "1 s", do = "start-flow", flow = "1"',
            ),
            't.toml:6: timeline[1].flow: the name "1" is taken by timeline[0]',
        ),
        (
            (
                'at = "0 s", do = "start-flow", flow = "x"',
                'at = "1 s", do = "start-ping", ping = "x"',
            ),
            'the name "x" is taken',
        ),
        (
            ('at = "5 s", do = "start-flow"', 'at = "1 s", do = "stop-flow", flow = "1"'),
            'too early: flow "1" starts only at 5 s',
        ),
        (
            ('at = "0 s", do = "start-flow"', 'after = "1", do = "mark", text = "x"'),
            'flow "1" never ends: give it bytes, a duration or a stop',
        ),
        (
            ('at = "0 s", do = "start-ping"', 'after = "p1", do = "mark", text = "x"'),
            'ping "p1" never ends: give it a count or a stop',
        ),
        (
            ('after = "w2", do = "start-download"', 'after = "w1", do = "start-download"'),
            "in a circle",
        ),
        (
            ('at = "0 s", do = "start-download"', 'at = "1 s", do = "stop-flow", flow = "w1"'),
            'no flow "w1" is ever started',
        ),
    ],
)
def test_steps_that_do_not_fit_together_are_refused(lines: tuple[str, ...], said: str) -> None:
    assert said in refusal(steps(*lines))


@pytest.mark.parametrize(
    "other",
    [
        'at = "2 s", do = "set-congestion-control", flow = "1", cc = "bbr"',
        'at = "2 s", do = "trace-flow", flow = "1"',
        'after = "1", do = "mark", text = "over"',
    ],
)
def test_a_mistake_in_a_step_is_none_in_those_that_speak_of_it(other: str) -> None:
    wrong = 'at = "0 s", do = "start-flow", flow = "1", bytes = "1 MB", cc = "vegass"'
    said = 'timeline[0].cc: unknown congestion control "vegass"; did you mean "vegas"?'
    assert refusal(steps(wrong, other)) == f"t.toml:5: {said}"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "t.toml:1: duration is missing"),
        (TWO, "t.toml:1: duration is missing"),
        ("durration = '1 s'" + TWO, 't.toml:1: durration: unknown key; did you mean "duration"?'),
        (HEAD.replace("topo", "tipo") + "hosts.h1.cc = 'bbr'" + TWO, 'did you mean "topology"?'),
        ("tilte = 'T'\nduration = '1 s'", 't.toml:1: tilte: unknown key; did you mean "title"?'),
        ("title = 1\nduration = '1 s'", "t.toml:1: title: must be text in quotes"),
        ("duration = 60", 't.toml:1: duration: 60 has no unit: write a time such as "20 s"'),
        ("duration = '0 s'", "must be from 1 µs to 24 h"),
        ("duration = '2 days'", 'is not a time such as "20 s" (units: us, ms, s, min, h)'),
        ("duration = '48 h'", "must be from 1 µs to 24 h, not"),
        ("duration = '2000 min'", "must be from 1 µs to 24 h, not"),
        ("duration = 2026-01-01", "must be a time"),
        (HEAD + "until = 'al'", 't.toml:4: until: unknown end "al"; did you mean "all"?'),
        (HEAD + "until = 'first'", 't.toml:4: until: "first" needs a start-flow with bytes'),
        (HEAD + "sampling = '500 Hz'", "must be from 10 Hz to 200 Hz, not 500 Hz"),
        (HEAD + "seed = -1", "must be from 0 to 2147483647, not -1"),
        (HEAD + "links = 5", "links: must be a table, not 5"),
        (HEAD + "links.h1-h2.rate = '1 Mbit/s'", "there is no link"),
        (HEAD + "links.bottleneck.rate = 10", '10 has no unit: write a rate such as "10 Mbit/s"'),
        (HEAD + "links.bottleneck.rate = 'unlimited'", "needs a rate"),
        (HEAD + "links.bottleneck.queue = 100", "queue: must be a table, not 100"),
        (HEAD + "links.bottleneck.queue = {}", "kind is missing"),
        (HEAD + "links.bottleneck = { delay = '1 ms', jitter = '2 ms' }", "can't be more than"),
        (HEAD + "links.bottleneck.bandwidth = '1 Mbit/s'", "unknown key"),
        (HEAD + "hosts.h9.cc = 'reno'", 'there is no host "h9" (there are: h1, h2)'),
        (HEAD + "hosts.r.cc = 'reno'", "is a router"),
        (HEAD + "hosts.h1.cc = 'rneo'", 'did you mean "reno"'),
        (HEAD + "timeline = 3", "timeline: must be a list of tables"),
        (HEAD + "timeline = [3]", "timeline[0]: must be a table, not 3"),
        (HEAD + "[hosts.h1]\ncc = 'reno'\ntimeline = []", "move it above the first one"),
        (HEAD + "case = []", "an empty list"),
        (HEAD + "[[case]]\nuntil = 'all'", "t.toml:4: case[0]: name is missing"),
        (HEAD + "[[case]]\nname = 'a'\n[[case]]\nname = 'a'", 'another case is named "a"'),
        (HEAD + "[[case]]\nname = 'a'\nlinks.x.rate = '1 Mbit/s'", "t.toml:6: case[0].links.x:"),
        ("duration = '1 s'\ntopology = { kind = 'leafspine', hops = 3 }", 'mean "leaf-spine"?'),
        ("duration = '1 s'\ntopology.kind = 'lineal'\nhosts.h9.cc = 'reno'" + TWO, '"linear"'),
        ("duration = '1 s'\ntopology.kind = 'lineal'\nlinks.edge.delay = '1 ms'", '"linear"'),
        ("duration = '1 s'\ntopology.pairs = 9", "from 1 to 8, not 9"),
        ("duration = '1 s'\ntopology = { kind = 'linear', pairs = 2 }", 'only a "dumbbell"'),
        ("duration = '1 s'\ntopology.pairs = 1\nhosts.s2.cc = 'reno'", 'no host "s2"'),
        ("duration '1 s'", "t.toml:1: column 10: not TOML"),
        ("\n\nduration =", "t.toml:3: "),
        pytest.param("a = " + "[" * 5000, "nested too deeply", id="deep"),
        ("a = 1\na = 2", "t.toml:2: "),
        pytest.param("a = " + "9" * 5000, "not TOML", id="long number"),
        ("a = 2026-02-31", "not TOML"),
        ("a = '''\n", "not TOML"),
    ],
)
def test_a_wrong_file_is_refused(text: str, said: str) -> None:
    (line,) = refusal(text).splitlines()
    assert said in line
    assert "t.toml:" in line


def test_all_mistakes_are_reported_at_once_in_the_order_of_the_file() -> None:
    message = refusal(
        HEAD
        + """links.bottleneck.rate = 10
timeline = [
  { at = "99 s", do = "start-flow", cc = "cubik", streams = 0 },
  { at = "99 s", do = "mark", text = "late" },
]
[[case]]
name = "a"
[[case]]
name = "b"
seed = "x"
"""
    ).splitlines()
    assert message[0] == "t.toml: 6 mistakes"
    assert [line.split(":")[1] for line in message[1:]] == ["4", "6", "6", "6", "7", "13"]


def test_control_characters_never_reach_the_terminal() -> None:
    message = refusal(HEAD + 'until = "\\u001b[31m\\u0000"')
    assert "\x1b" not in message
    assert "\\u001b" in message


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b'title = "\xff"', "a.toml:1: not UTF-8 text"),
        (b'title = "a"\n\n# \xe9', "a.toml:3: not UTF-8 text"),
        (b"#" * 1_000_001, "a scenario may have 1,000,000 bytes at most"),
        (b"\x00", "not TOML"),
    ],
)
def test_what_is_no_text_is_refused(tmp_path: Path, content: bytes, said: str) -> None:
    path = tmp_path / "a.toml"
    path.write_bytes(content)
    with pytest.raises(ScenarioError, match=said):
        load(path)


def test_a_directory_or_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match="directory"):
        load(tmp_path)
    with pytest.raises(ScenarioError, match="No such file"):
        load(tmp_path / "x.toml")


def test_find_knows_what_is_shipped_and_suggests_it(tmp_path: Path) -> None:
    assert find("bufferbloat").name == "bufferbloat.toml"
    mine = tmp_path / "bufferbloat.toml"
    mine.touch()
    assert find(mine) == mine
    for wrong in ("bufferblaot", "./bufferblaot.toml"):
        with pytest.raises(ScenarioError, match='did you mean "bufferbloat"'):
            find(wrong)
    for odd in ("", "a\0b", "x" * 5000):
        with pytest.raises(ScenarioError, match=r"no scenario|can't read"):
            load(find(odd))


@pytest.mark.parametrize(
    "topology", [Topology(kind="linear"), Topology(pairs=1), Topology(pairs=8)]
)
def test_every_name_of_a_link_is_known_and_no_other(topology: Topology) -> None:
    network = plan(topology)
    whole = [f"{there.src}-{there.dst}" for there, _ in network.cables]
    turned = [f"{back.src}-{back.dst}" for _, back in network.cables]
    for name in ["bottleneck", *(link.name for link in network.links), *whole, *turned]:
        assert link_problem(network, name) is None
    for name in ["r1->r20", "r1", "r1-", "->", "", "s1-d1", "Bottleneck"]:
        assert link_problem(network, name)


# --- against a kernel -----------------------------------------------------------------------


def kernel() -> Capabilities:
    """Return a kernel with Reno and pfifo alone, without BBR's module."""
    return replace(
        CAPABILITIES,
        kernel="6.0",
        congestion_controls=[
            Feature(name="reno", available=True),
            Feature(name="bbr", available=False, reason="no module", remedy="modprobe tcp_bbr"),
        ],
        qdiscs=[Feature(name="pfifo", available=True)],
    )


def test_what_a_kernel_lacks_is_reported_with_the_remedy() -> None:
    scenario = parse(
        steps(
            'at = "0 s", do = "start-flow", cc = "bbr"',
            'at = "0 s", do = "start-flow", cc = "reno"',
            'at = "0 s", do = "set-qdisc", kind = "cake"',
        ),
        PATH,
    )
    with pytest.raises(UnsupportedError) as caught:
        check_against(scenario, kernel())
    first, second = str(caught.value).splitlines()
    assert first.startswith('t.toml: timeline[0]: congestion control "bbr" is not in this kernel')
    assert first.endswith("(has: reno): no module; modprobe tcp_bbr")
    assert '"cake" is not in this kernel (has: pfifo)' in second


@pytest.mark.parametrize(
    ("lack", "remedy"),
    [
        (None, "add --kernel auto, for a guest, which costs little"),
        ("none", "make guest (or ccplay guest) fetches one, then add --kernel auto"),
    ],
)
def test_a_full_kernel_is_offered_for_what_this_one_lacks(
    lack: str | None, remedy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(boot, "is_possible", lambda: True)
    monkeypatch.setattr(boot, "absent", lambda: lack)
    monkeypatch.setattr(boot, "flaw", lambda *_: None)
    monkeypatch.setattr(boot, "cost", lambda: "costs little")
    scenario = parse(steps('at = "0 s", do = "set-qdisc", kind = "cake"'), PATH)
    here = replace(kernel(), kernel=os.uname().release)
    said = "this kernel lacks a queue discipline that the scenario needs"
    assert only_in_guest(scenario, here) == (None if lack else said)
    with pytest.raises(UnsupportedError) as caught:
        check_against(scenario, here)
    offer = f"a full kernel has this queue discipline: {remedy}"
    assert str(caught.value).endswith(f"\n{offer}")
    assert guest_offer(scenario, folded(replace(HELLO, capabilities=here))) == offer
    assert not guest_offer(scenario, folded(replace(HELLO, capabilities=kernel())))
    assert not guest_offer(scenario, folded())
    # A guest is not offered if the kernel is not this machine's, or for an algorithm in BPF.
    with pytest.raises(UnsupportedError) as caught:
        check_against(scenario, kernel())
    assert "guest" not in str(caught.value)
    ours = parse(steps('at = "0 s", do = "start-flow", cc = "vegas.bpf"'), PATH)
    with pytest.raises(UnsupportedError) as caught:
        check_against(ours, here)
    assert "guest" not in str(caught.value)
    assert only_in_guest(ours, here) is None


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            'at = "0 s", do = "set-qdisc", kind = "red", limit = "90 kB", harddrop = true',
            "has no harddrop",
        ),
        ('at = "0 s", do = "set-qdisc", kind = "red", limit = "90 kB"', ""),
        ('at = "0 s", do = "set-qdisc", kind = "red.py", limit = "90 kB"', ""),
        (
            (
                'at = "0 s", do = "set-classes", classes = [{ name = "a", share = "50 %", '
                'traffic = ["1"], queue = { kind = "red" } }]'
            ),
            "can't be the queue of a class",
        ),
    ],
)
def test_what_only_the_kernels_own_discipline_does_is_known(text: str, said: str) -> None:
    """ccplay's own discipline serves for a missing one of the kernel, if it has what is asked."""
    here = replace(kernel(), kernel=os.uname().release)
    own = [Feature(name=name, available=True, summary="ours") for name in ("red", "red.py")]
    here = replace(here, qdiscs=[*here.qdiscs, *own], classifiers=[Feature("u32", True)])
    scenario = parse(steps(text), PATH)
    if not said:
        check_against(scenario, here)
        return
    with pytest.raises(UnsupportedError) as caught:
        check_against(scenario, here)
    assert f'"red" is not in this kernel, and ccplay\'s own {said}' in str(caught.value)
    there = replace(here, qdiscs=[Feature(name="red", available=True, summary="the kernel's")])
    check_against(scenario, there)


def test_what_a_kernel_has_passes() -> None:
    scenario = parse(steps('at = "0 s", do = "start-flow", cc = "reno"'), PATH)
    check_against(scenario, kernel())
    assert only_in_guest(scenario, kernel()) is None


def test_an_mtu_is_of_both_directions() -> None:
    (case,) = parse(HEAD + "links.h1-r.mtu = 400", PATH).cases
    assert case.build.links["h1-r"].mtu == 400
    for said, problem in (
        ('links."h1->r".mtu = 400', "applies to both directions: links.h1-r.mtu"),
        ("links.h1-r.mtu = 100", "from 296 B to 1500 B"),
        ('links.h1-r.mtu = "400 bytes"', "must be a whole number"),
    ):
        assert problem in refusal(HEAD + said)


def test_marks_need_a_link_with_a_queue_and_a_kernel_that_can() -> None:
    text = HEAD + "links.bottleneck.mark = 65"
    scenario = parse(text, PATH)
    assert scenario.cases[0].build.links["bottleneck"].mark == 65
    for said, problem in (
        ("links.h1-r.mark = 65", "no queue forms: give the link a rate"),
        ('links.bottleneck.mark = "100 kB"', 'is not a number of packets such as "100"'),
    ):
        assert problem in refusal(HEAD + said)
    missing = Feature(name="threshold", available=False, reason="no root", remedy="start as root")
    with pytest.raises(UnsupportedError, match=r'bottleneck.mark: ECN marker "thr.*start as root'):
        check_against(scenario, replace(kernel(), markers=[missing]))
    check_against(scenario, replace(kernel(), markers=[Feature(name="threshold", available=True)]))
    check_against(parse(HEAD + "links.bottleneck.mark = 0", PATH), kernel())
