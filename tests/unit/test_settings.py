"""``--set`` overrides the file and its cases, but not the matrix; its mistakes name it."""

from pathlib import Path

import pytest

from ccplay.errors import ScenarioError
from ccplay.model.values import Qdisc
from ccplay.scenario.reading import load, parse
from ccplay.scenario.tree import read_path
from ccplay.scenario.values import Scenario
from ccplay.traffic.flow import StartFlow

TEXT = """
title = "T"
duration = "60 s"
topology.kind = "linear"
links.bottleneck = { rate = "2 Mbit/s", queue = { kind = "pfifo", limit = 100 } }
timeline = [{ at = "0 s", do = "start-flow", cc = "reno" }]
[matrix]
delay = { path = 'links."r->h2".delay', values = ["50 ms", "100 ms"] }
"hosts.h2.cc" = ["reno", "bbr"]
[[case]]
name = "a"
[[case]]
name = "b"
links.bottleneck.rate = "3 Mbit/s"
"""


def read(*settings: str) -> Scenario:
    """Read the file with these settings."""
    return parse(TEXT, Path("t.toml"), settings)


def refusal(*settings: str) -> str:
    """Return the message with which settings are refused."""
    with pytest.raises(ScenarioError) as caught:
        read(*settings)
    return str(caught.value)


def test_a_setting_lies_over_the_file_and_over_every_case() -> None:
    settings = (
        "links.bottleneck.rate = 5 Mbit/s",
        'links.bottleneck.queue={ kind = "codel" }',
        "timeline[0].cc=bbr",
        "repeats=3",
        'title="Mine"',
        "seed=1",
        "seed=2",
    )
    scenario = read(*settings)
    assert scenario.settings == settings
    assert (scenario.title, scenario.cases[0].title[:7]) == ("Mine", "Mine: a")
    for case in scenario.cases:
        bottleneck = case.build.links["bottleneck"]
        assert (bottleneck.rate, bottleneck.qdisc) == (5_000_000, Qdisc(kind="codel"))
        assert isinstance(case.timeline[0].command, StartFlow)
        assert case.timeline[0].command.cc == "bbr"
        assert (case.repeats, case.build.seed) == (3, 2)


def test_the_values_of_an_axis_can_be_set() -> None:
    scenario = read('matrix.delay.values=["1 ms"]', "matrix.'hosts.h2.cc'=['cubic']")
    assert [case.name for case in scenario.cases] == [
        "a, delay 1 ms, cc cubic",
        "b, delay 1 ms, cc cubic",
    ]


def test_an_axis_can_be_added() -> None:
    assert len(read('matrix."links.bottleneck.queue.limit"=[1, 2, 3]').cases) == 24


def test_files_are_loaded_with_settings(tmp_path: Path) -> None:
    path = tmp_path / "t.toml"
    path.write_text(TEXT)
    assert {case.duration_s for case in load(path, ["duration=9 s"]).cases} == {9.0}


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ("seed", '--set seed: "seed" is not PATH=VALUE, such as'),
        ("", '--set : "" is not PATH=VALUE'),
        ("=3", '"=3" is not PATH=VALUE'),
        ("a b=3", '"a b=3" is not PATH=VALUE'),
        ("seed.=3", "is not PATH=VALUE"),
        ('links."r.delay=3', "is not PATH=VALUE"),
        ('links."\\q".delay=3', "is not a quoted string of TOML"),
        ("seed=x", '--set seed: must be a whole number, not "x"'),
        ("seed=", 'not ""'),
        ("seed=1\nduration='1 s'", "must be a whole number"),
        ("sede=3", '--set sede: unknown key; did you mean "seed"?'),
        ("duration=[", '--set duration: "[" is not TOML: '),
        ("links.bottleneck.dealy=3", '--set links.bottleneck.dealy: unknown key "dealy"; did'),
        ("links.bottleneck.rate=2", "--set links.bottleneck.rate: 2 has no unit"),
        ("links.bottleneck.queue.limit=0", "--set links.bottleneck.queue.limit: must be from 1"),
        ('topology={kind="fat-tree",k=3}', "--set topology: topology fat-tree: k is even, not 3"),
        ("timeline=[{}]", "--set timeline: [0]: do is missing"),
        ("timeline.1.cc=bbr", '--set timeline.1.cc: there is no "1" in timeline, which has 1'),
        ("duration.x=1", '--set duration.x: there is no "x" in "60 s", which is not a table'),
        ("case.0.seed=1", "--set case.0.seed: a setting applies to every case"),
        ("name=x", "--set name: unknown key"),
        (
            "links.r->h2.delay=3 ms",
            "--set links.r->h2.delay: the matrix sets it in every case: use --set matrix.delay.",
        ),
        ("links.r->h2.delay.x=3 ms", "use --set matrix.delay.values=[…]"),
        ("hosts.h2.cc=bbr", 'use --set matrix."hosts.h2.cc"=[…]'),
        (
            'matrix.delay.values="5 ms"',
            '--set matrix.delay.values: must be a list of values, not "5',
        ),
        ("matrix.delay.values=[1]", "--set matrix.delay.values: [0]: 1 has no unit"),
        ("about=a\udcff", '"about=a\\udcff" is not UTF-8 text'),
        ("seed\x1b[31m=1", "--set seed\\u001b[31m: "),
        pytest.param("seed=" + "[" * 5000, "nested too deeply", id="deep"),
    ],
)
def test_what_does_not_fit_is_refused_by_the_name_of_the_setting(setting: str, said: str) -> None:
    message = refusal(setting)
    assert said in message
    assert message.startswith("t.toml:")
    assert "\x1b" not in message


def test_other_names_of_a_link_must_not_undo_a_setting() -> None:
    text = TEXT.replace("[matrix]", 'links.h1-r.delay = "1 ms"\n[matrix]')
    text = text.replace("links.bottleneck = {", 'links."h1->r".loss = "0 %"\nlinks.bottleneck = {')
    with pytest.raises(ScenarioError, match=r'--set links."h1->r".delay: links."h1-r" further'):
        parse(text, Path("t.toml"), ['links."h1->r".delay=3 ms'])


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("seed", ("seed",)),
        ("links.bottleneck.queue.limit", ("links", "bottleneck", "queue", "limit")),
        ('links."r->h2".delay', ("links", "r->h2", "delay")),
        ("links.r->h2.delay", ("links", "r->h2", "delay")),
        ("links.'r->h2'.delay", ("links", "r->h2", "delay")),
        ("timeline.0.cc", ("timeline", "0", "cc")),
        ("timeline[0].cc", ("timeline", "0", "cc")),
        ('"a.b" . "c\\u0041"', ("a.b", "cA")),
    ],
)
def test_paths_are_read_as_people_write_them(text: str, path: tuple[str, ...]) -> None:
    assert read_path(text) == path
