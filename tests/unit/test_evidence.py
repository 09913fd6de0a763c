"""What a file says about repeats, metrics and checks is read as meant, or refused in its place."""

from pathlib import Path

import pytest

from ccplay.errors import ScenarioError
from ccplay.scenario.reading import parse
from ccplay.scenario.values import Expectation, Published

HEAD = 'duration = "60 s"\ntopology.kind = "linear"\n'
PATH = Path("t.toml")


def test_all_of_it_is_read() -> None:
    case = parse(
        HEAD
        + """
repeats = 6
jitter = "100 ms"
balanced = true
metrics = ["checkpoint.ratio", "flows.1.goodput_bps", "queues.r->h2.qlen_p50"]
expect = [ { metric = "pings.p1.p50_ms", value = 800, tolerance = "15 %", why = "it waits" },
           { metric = "jain", at_least = 0.9, why = "fair" },
           { metric = "a.b", at_least = 1, at_most = 2.5, why = "between" },
           { metric = "drops", value = -2, tolerance = 0.5, why = "so" } ]
published = [ { metric = "checkpoint.ratio", values = [0.72, 1], note = " theirs " } ]
""",
        PATH,
    ).case()
    assert (case.repeats, case.jitter_s, case.balanced) == (6, 0.1, True)
    assert case.metrics == ("checkpoint.ratio", "flows.1.goodput_bps", "queues.r->h2.qlen_p50")
    waits, fair, between, drops = case.expect
    assert waits.low == pytest.approx(680)
    assert waits.high == pytest.approx(920)
    assert (waits.text, waits.why, waits.place) == ("800 ± 15 %", "it waits", "expect[0]")
    assert fair == Expectation(
        metric="jain", low=0.9, text="at least 0.9", why="fair", place="expect[1]"
    )
    assert (between.low, between.high, between.text) == (1, 2.5, "1 to 2.5")
    assert (drops.low, drops.high, drops.text) == (-2.5, -1.5, "-2 ± 0.5")
    assert case.published == (Published("checkpoint.ratio", (0.72, 1.0), "theirs"),)


def test_a_case_replaces_what_is_common() -> None:
    scenario = parse(
        HEAD
        + """
repeats = 3
metrics = ["jain"]
[[case]]
name = "a"
[[case]]
name = "b"
repeats = 5
metrics = ["drops", "loss"]
""",
        PATH,
    )
    assert [(case.repeats, case.metrics) for case in scenario.cases] == [
        (3, ("jain",)),
        (5, ("drops", "loss")),
    ]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("repeats = 0", "t.toml:3: repeats: must be from 1 to 1000, not 0"),
        ("repeats = '3'", "a whole number"),
        ("jitter = 0.1", 'jitter: 0.1 has no unit: write a time such as "20 s"'),
        ("jitter = '61 s'", None),
        ("balanced = 1", "balanced: must be true or false, not 1"),
        ("metrics = 'jain'", 'metrics: must be a list of metrics, not "jain"'),
        ("metrics = [3]", "metrics[0]: 3 is not a metric"),
        ("metrics = ['jain', 'jain']", 'metrics[1]: "jain" is named twice'),
        ("metrics = ['a..']", "is not a metric"),
        ("expect = {}", "must be a list of tables"),
        ("expect = [{}]", "expect[0]: metric is missing"),
        ("expect = [{ metric = 'a', why = 'x' }]", "needs a value with a tolerance"),
        ("expect = [{ metric = 'a', value = 1 , at_most = 2, why = 'x' }]", "not both"),
        ("expect = [{ metric = 'a', at_least = 1, tolerance = 2, why = 'x' }]", "not both"),
        ("expect = [{ metric = 'a', value = 1, why = 'x' }]", "tolerance is missing"),
        ("expect = [{ metric = 'a', value = 1, tolerance = '15' }]", "is not a tolerance"),
        ("expect = [{ metric = 'a', value = 1, tolerance = '5 ms %' }]", "is not a tolerance"),
        ("expect = [{ metric = 'a', value = 1, tolerance = -1 }]", "allows nothing"),
        ("expect = [{ metric = 'a', value = 0, tolerance = '5 %' }]", "a share of 0 is 0"),
        ("expect = [{ metric = 'a', value = nan, tolerance = 1 }]", "a plain number, not nan"),
        ("expect = [{ metric = 'a', value = '8 ms', tolerance = 1 }]", 'not "8 ms"'),
        ("expect = [{ metric = 'a', at_least = 2, at_most = 1 }]", "is more than at_most 1"),
        ("expect = [{ metric = 'a', at_least = 2 }]", "why is missing"),
        ("expect = [{ metric = 'a', at_leats = 2, why = 'x' }]", 'did you mean "at_least"?'),
        ("published = [{ metric = 'a', values = [] }]", "needs one reading or more"),
        ("published = [{ metric = 'a', values = 3 }]", "must be a list of numbers, not 3"),
        ("published = [{ metric = 'a', values = [true] }]", "published[0].values[0]: must be a"),
        ("published = [{ values = [1] }]", "metric is missing"),
        ("published = [{ metric = 'a' }]", "needs either values"),
        ("published = [{ metric = 'a', values = [1], curve = 'a.csv' }]", "needs either values"),
        ("published = [{ metric = 'a', curve = [] }]", "needs one row or more"),
        ("published = [{ metric = 'a', curve = [{ delay = '5 ms' }] }]", "value is missing"),
        ("published = [{ metric = 'a', curve = [{ x = 1, value = 2 }] }]", 'no axis "x"'),
        ("published = [{ metric = 'a', curve = '/etc/a.csv' }]", "beside the scenario"),
        ("published = [{ metric = 'a', curve = '../a.csv' }]", "beside the scenario"),
        ("published = [{ metric = 'a', curve = 'none.csv' }]", "No such file"),
    ],
)
def test_what_does_not_fit_is_refused_in_its_place(line: str, said: str | None) -> None:
    if said is None:
        assert parse(HEAD + line, PATH).cases
        return
    with pytest.raises(ScenarioError) as caught:
        parse(HEAD + line, PATH)
    assert said in str(caught.value)
    assert "t.toml:3: " in str(caught.value)


def test_no_jitter_may_carry_a_flow_over_the_end() -> None:
    text = """jitter = "2 s"
timeline = [{ at = "59 s", do = "start-flow" }]
"""
    with pytest.raises(ScenarioError, match=r"t.toml:3: jitter: a flow's step at 59 s could come"):
        parse(HEAD + text, PATH)


def test_the_names_of_0_1_are_read() -> None:
    """In the file, in its cases and lessons, and in settings; what they replace is the same."""
    old = """\
duration = "9 s"
topology = { kind = "linear" }
figures = ["jain"]
published = [{ figure = "jain", values = [1] }]
hosts.figure.cc = "reno"
[[case]]
name = "one"
[[case]]
name = "two"
figures = ["drops"]
expect = [{ figure = "drops", at_most = 1, why = "few" }]
"""
    settings = ['expect=[{figure="jain", at_least=0.5, why="fair"}]']
    todays = old.replace("figures =", "metrics =").replace("{ figure =", "{ metric =")
    for text in (old, todays):
        with pytest.raises(ScenarioError, match=r'no host "figure"|hosts.figure'):
            parse(text, PATH)
    old, todays = (text.replace("hosts.figure", "hosts.h1") for text in (old, todays))
    assert parse(old, PATH).cases == parse(todays, PATH).cases
    assert parse(old, PATH, settings).cases == parse(todays, PATH, settings).cases
    one, two = parse(old, PATH, ["figures=['loss']"]).cases
    assert (one.metrics, two.metrics) == (("loss",), ("loss",))
    assert two.expect[0].place == "case[1].expect[0]"


def test_a_key_under_both_names_is_a_mistake() -> None:
    text = (
        'duration = "9 s"\ntopology = { kind = "linear" }\nfigures = ["jain"]\nmetrics = ["jain"]'
    )
    with pytest.raises(ScenarioError, match=r":3: figures: the older name of metrics"):
        parse(text, PATH)
    text = text.replace(
        'metrics = ["jain"]', 'expect = [{ figure = "a", metric = "b", why = "x" }]'
    )
    with pytest.raises(ScenarioError, match=r"expect\[0\].figure: the older name of metric"):
        parse(text, PATH)


CURVE = """\
published = [{ metric = "a", curve = %s, note = "theirs" }]
[matrix]
delay = { path = "links.bottleneck.delay", values = ["10 ms", "20 ms", "30 ms"] }
limit = { path = "links.bottleneck.queue.limit", values = [10, 20] }
[links.bottleneck]
queue.kind = "pfifo"
"""


@pytest.mark.parametrize("beside", [False, True], ids=["in the file", "in a CSV file beside it"])
def test_a_curve_has_a_value_for_each_point_of_the_matrix(tmp_path: Path, *, beside: bool) -> None:
    """A point without a row has none; a row may leave out an axis; several are several readings."""
    ours = '{ delay = "10 ms", limit = 10, value = 1 }, { delay = "10 ms", limit = 20, value = 2 }'
    (tmp_path / "a.csv").write_text("\ufeffdelay, limit,value\n10 ms,10,1\n\n10 ms, 20, 2\n")
    text = HEAD + CURVE % ('"a.csv"' if beside else f"[{ours}]")
    scenario = parse(text, tmp_path / "t.toml")
    assert [case.published for case in scenario.cases] == [
        (Published("a", (1.0,), "theirs", curve=True),),
        (Published("a", (2.0,), "theirs", curve=True),),
        *[()] * 4,
    ]
    assert list(scenario.files) == (["a.csv"] if beside else [])
    whole = HEAD + CURVE % '[{ delay = "20 ms", value = 1 }, { delay = "20 ms", value = 3 }]'
    found = [case.published for case in parse(whole, PATH).cases]
    assert found == [(), (), *[(Published("a", (1.0, 3.0), "theirs", curve=True),)] * 2, (), ()]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"delay,value\n10 ms,x\n", "a.csv:2: value is not a plain number"),
        (b"delay,value\n10 ms,nan\n", "a.csv:2: value is not a plain number"),
        (b"delay,value\n10 ms\n", "a.csv:2: value is not a plain number"),
        (b"delay,value\n20  ms,1\n", 'a.csv:2: axis "delay" has no value "20  ms"; did you mean'),
        (b"dealy,value\n10 ms,1\n", 'the matrix has no axis "dealy"; did you mean "delay"?'),
        (b"delay\n10 ms\n", "a.csv:1: names the axes and value"),
        (b"", "a.csv:1: names the axes and value"),
        (b"delay,value\n\x1b]0;x\x07,1\n", "control character"),
        (b"delay,value\n\xff,1\n", "not UTF-8"),
        (b"delay,value\n" + b"10 ms,1\n" * 1001, "a.csv:1002: more than 1000 rows"),
        (b"#" * 100_001, "it is larger than 100 kB"),
        (None, "symlink"),
    ],
)
def test_a_file_of_a_curve_is_small_plain_data_beside_the_scenario(
    tmp_path: Path, content: bytes | None, said: str
) -> None:
    if content is None:
        (tmp_path / "a.csv").symlink_to("/etc/hostname")
    else:
        (tmp_path / "a.csv").write_bytes(content)
    with pytest.raises(ScenarioError) as caught:
        parse(HEAD + CURVE % '"a.csv"', tmp_path / "t.toml")
    assert said in str(caught.value)
    assert "t.toml:3: published[0].curve: " in str(caught.value)
