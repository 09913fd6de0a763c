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
    assert fair == Expectation("jain", 0.9, None, "at least 0.9", "fair", "expect[1]")
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
