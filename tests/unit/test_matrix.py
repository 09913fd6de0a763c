"""Every case is run at every point of its matrix, and a mistake names the value that it is in."""

from pathlib import Path

import pytest

from ccplay.errors import ScenarioError, UsageError
from ccplay.model.values import LinkSetting, Qdisc
from ccplay.scenario.reading import parse
from ccplay.scenario.values import Case, Scenario
from ccplay.traffic.flow import StartFlow

HEAD = """duration = "60 s"
topology.kind = "linear"
links.bottleneck = { rate = "2 Mbit/s", queue = { kind = "pfifo", limit = 100 } }
timeline = [{ at = "0 s", do = "start-flow" }, { at = "0 s", do = "start-flow", cc = "bbr" }]
"""
DELAYS = """[matrix]
delay = { path = 'links."r->h2".delay', values = ["50 ms", "100 ms"] }
"links.bottleneck.queue.limit" = [10, 25]
"""


def read(text: str) -> Scenario:
    """Read a file that begins with the head, whose next line is the fifth."""
    return parse(HEAD + text, Path("t.toml"))


def refusal(text: str) -> str:
    """Return the message with which a file is refused."""
    with pytest.raises(ScenarioError) as caught:
        read(text)
    return str(caught.value)


def queue(case: Case) -> Qdisc | None:
    """Return the queue of the link under study."""
    return case.build.links["bottleneck"].qdisc


def test_a_file_is_run_at_every_point_the_last_axis_changing_fastest() -> None:
    cases = read(DELAYS).cases
    assert [case.name for case in cases] == [
        "delay 50 ms, limit 10",
        "delay 50 ms, limit 25",
        "delay 100 ms, limit 10",
        "delay 100 ms, limit 25",
    ]
    last = cases[-1]
    assert last.parameters == {"delay": "100 ms", "limit": 25}
    assert last.title == "t: delay 100 ms, limit 25"
    assert last.build.links["r->h2"] == LinkSetting(delay_us=100_000)
    assert queue(last) == Qdisc(kind="pfifo", options={"limit": 25})
    assert last.build.links["bottleneck"].rate == 2_000_000


def test_a_word_of_a_point_names_all_that_have_it() -> None:
    scenario = read(DELAYS)
    assert [case.name for case in scenario.only(["limit 25"]).cases] == [
        "delay 50 ms, limit 25",
        "delay 100 ms, limit 25",
    ]
    (one,) = scenario.only(["delay 50 ms, limit 10"]).cases
    assert one.parameters == {"delay": "50 ms", "limit": 10}
    with pytest.raises(UsageError, match='no case "limit 2"; did you mean'):
        scenario.only(["limit 2"])


@pytest.mark.parametrize(
    ("said", "names"),
    [
        ("CoDel", ["delay 50 ms, queue CoDel", "delay 150 ms, queue CoDel"]),
        ("fq-codel", ["delay 50 ms, queue FQ-CoDel", "delay 150 ms, queue FQ-CoDel"]),
        ("q-cod", ["delay 50 ms, queue FQ-CoDel", "delay 150 ms, queue FQ-CoDel"]),
        ("50", ["delay 50 ms, queue CoDel", "delay 50 ms, queue FQ-CoDel"]),
        ("50 MS, queue codel", ["delay 50 ms, queue CoDel"]),
        ("5", []),
        (" ", []),
    ],
)
def test_any_part_of_its_name_names_a_case(said: str, names: list[str]) -> None:
    """Whole words before other parts; no part of a number, which would be another one."""
    scenario = read(
        '[matrix]\ndelay = { path = "links.bottleneck.delay", values = ["50 ms", "150 ms"] }\n'
        'queue = { path = "links.bottleneck.queue.limit", values = [1, 2], '
        'names = ["CoDel", "FQ-CoDel"] }\n'
    )
    if names:
        assert [case.name for case in scenario.only([said]).cases] == names
    else:
        with pytest.raises(UsageError, match="has no case"):
            scenario.only([said])


def test_every_case_has_the_matrix_and_may_add_to_it_or_change_it() -> None:
    cases = read(
        DELAYS
        + """
[[case]]
name = "a"
[[case]]
name = "b"
matrix.delay.values = ["1 ms"]
matrix."links.bottleneck.queue.limit" = [7]
matrix.cc = { path = ["timeline.0.cc", "hosts.h2.cc"], values = ["reno", "cubic"] }
"""
    ).cases
    assert [case.name for case in cases[:2]] == [
        "a, delay 50 ms, limit 10",
        "a, delay 50 ms, limit 25",
    ]
    assert [case.name for case in cases[4:]] == [
        "b, delay 1 ms, limit 7, cc reno",
        "b, delay 1 ms, limit 7, cc cubic",
    ]
    step = cases[5].timeline[0].command
    assert isinstance(step, StartFlow)
    assert (step.cc, cases[5].build.congestion_controls) == ("cubic", {"h2": "cubic"})


def test_values_may_be_tables_that_have_names() -> None:
    cases = read(
        """[matrix.queue]
path = "links.bottleneck.queue"
values = [{ kind = "pfifo", limit = 20 }, { kind = "codel", ecn = true }]
names = ["fifo", "CoDel"]
"""
    ).cases
    assert [case.name for case in cases] == ["queue fifo", "queue CoDel"]
    assert cases[1].parameters == {"queue": "CoDel"}
    assert queue(cases[1]) == Qdisc(kind="codel", options={"ecn": True})


def test_values_keep_their_types() -> None:
    cases = read(
        """[matrix]
balanced = [true, false]
tolerance = { path = "expect.0.tolerance", values = [0.5, 1] }
[[case]]
name = "a"
expect = [{ metric = "jain", value = 1, tolerance = 0, why = "fair" }]
"""
    ).cases
    assert cases[0].name == "a, balanced true, tolerance 0.5"
    assert [case.parameters["balanced"] for case in cases] == [True, True, False, False]
    assert [case.expect[0].low for case in cases] == [0.5, 0, 0.5, 0]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("matrix = 3", "t.toml:5: matrix: must be a table, not 3"),
        ("matrix.a = 3", "t.toml:5: matrix.a: must be a list of values, not 3"),
        ("matrix.a = []", "matrix.a: an empty list: no case would be run"),
        ("matrix.'a b' = [1]", 'matrix."a b": "a b" is not a path such as'),
        ("matrix.seed = [[1]]", "matrix.seed[0]: has no name of its own: give the axis names"),
        ("matrix.seed = [1, 1]", "matrix.seed[1]: 1 is there already"),
        ("matrix.seed = [1, 'x']", "t.toml:5: matrix.seed[1]: must be a whole number"),
        ("matrix.seed = [nan]", "must be a plain number, not nan"),
        ("matrix.seed = [99999999999999999999]", "is too large"),
        ('matrix.about = ["a\\nb"]', "one line of text"),
        ('matrix.about = ["a\\u001b[3m"]', "about[0]: has the control character \\u001b"),
        ("matrix.links.bottleneck.delay = ['1 ms']", "matrix.links: needs a path and values"),
        ("matrix.a = { path = 'seed' }", "matrix.a: values is missing"),
        ("matrix.a = { values = [1] }", "matrix.a: path is missing"),
        ("matrix.a = { path = 3, values = [1] }", "matrix.a.path: 3 is not a path"),
        ("matrix.a = { path = [], values = [1] }", "matrix.a.path: an empty list"),
        ("matrix.a = { path = 'seed', valeus = [1] }", 'did you mean "values"?'),
        ("matrix.a = { path = 'seed', values = [1], names = ['x', 'y'] }", "2 names for 1 values"),
        ("matrix.a = { path = 'seed', values = [1, 2], names = ['x', 'x'] }", "is there already"),
        ("matrix.a = { path = 'sede', values = [1] }", 'unknown key "sede"; did you mean "seed"?'),
        ("matrix.a = { path = 'matrix.b', values = [1] }", 'unknown key "matrix"'),
        ("matrix.a = { path = 'title', values = ['x'] }", 'unknown key "title"'),
        (
            "matrix.a = { path = 'topology.kind.x', values = [1] }",
            'no "x" in "linear", which is not',
        ),
        (
            "matrix.a = { path = 'timeline.2.cc', values = ['bbr'] }",
            'no "2" in timeline, which has 2',
        ),
        ("matrix.a = { path = 'timeline.x.cc', values = ['bbr'] }", 'no "x" in timeline'),
        (
            "matrix = { seed = [1], b = { path = 'seed', values = [2] } }",
            'axis "seed" sets this too',
        ),
        (
            "matrix = { h = { path = 'hosts', values = [{}], names = ['x'] }, 'hosts.h1' = [1] }",
            'axis "h" sets this too',
        ),
        (
            "matrix = { 'hosts.h1.cc' = ['bbr'], 'hosts.h2.cc' = ['bbr'] }",
            'matrix."hosts.h2.cc": another axis is named "cc": give them names',
        ),
        ("matrix.seed = [" + ",".join(map(str, range(1001))) + "]", "matrix: more than 1000 cases"),
    ],
)
def test_what_is_no_matrix_is_refused_in_its_place(text: str, said: str) -> None:
    message = refusal(text)
    assert said in message
    assert "t.toml:5: " in message


def test_a_wrong_value_names_the_value_and_its_line() -> None:
    message = refusal(
        """[matrix.delay]
path = "links.r-h2.delay"
values = [
  "1 ms",
  "2 Mbit/s",
]
"""
    )
    said = '"2 Mbit/s" is not a time such as "20 ms" (units: us, ms, s, min, h)'
    assert message == f"t.toml:9: matrix.delay.values[1]: {said}"


def test_what_is_wrong_at_some_points_only_reports_at_which() -> None:
    text = """
links.r-h2.jitter = "5 ms"
[matrix]
"links.r-h2.delay" = ["1 ms", "20 ms", "2 ms"]
"""
    assert refusal(text) == (
        "t.toml:6: links.r-h2.jitter: can't be more than the delay that it varies "
        '(in "delay 1 ms" and 1 more)'
    )


def test_the_limit_counts_the_points_of_all_cases() -> None:
    seeds = "matrix.seed = [" + ",".join(map(str, range(501))) + "]\n"
    cases = "".join(f"[[case]]\nname = '{name}'\n" for name in "ab")
    assert "more than 1000 cases, all points counted" in refusal(seeds + cases)
    assert len(read(seeds).cases) == 501


def test_steps_are_limited_too() -> None:
    """A small file must not keep its reader busy for minutes."""
    steps = '{ at = "0 s", do = "mark", text = "x" },' * 1001
    text = f"duration = '1 s'\ntimeline = [{steps}]\nmatrix.seed = {list(range(100))}"
    with pytest.raises(ScenarioError, match=r"t.toml: more than 250,000 keys and values"):
        parse(text, Path("t.toml"))


def test_another_name_of_the_link_must_not_undo_the_matrix() -> None:
    """Of a link's names the later entry wins, so these delays would not be those of the run."""
    before = """
links."r->h2".loss = "1 %"
links.r-h2.delay = "0 ms"
"""
    after = """
links.r-h2.delay = "0 ms"
links."r->h2".loss = "1 %"
"""
    matrix = "matrix.'links.\"r->h2\".delay' = ['1 ms', '2 ms']\n"
    assert 't.toml:8: matrix.\'links."r->h2".delay\'[0]: links."r-h2" further' in refusal(
        before + matrix
    )
    assert len(read(after + matrix).cases) == 2
    assert len(read(before).cases) == 1
