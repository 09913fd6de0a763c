"""Networks named on the command line, and the scenario that tries one."""

import pytest

from ccplay.cli import main
from ccplay.cli.options import _topology
from ccplay.scenario.writing import MOST_FLOWS, trial
from ccplay.traffic.flow import StartFlow


@pytest.mark.parametrize(
    ("said", "toml"),
    [
        ("star", '{ kind = "star" }'),
        ("leaf-spine,spines=4,leaves=3", '{ kind = "leaf-spine", spines = 4, leaves = 3 }'),
        ("leaf-spine,3,4", '{ kind = "leaf-spine", leaves = 3, spines = 4 }'),
    ],
)
def test_a_topology_is_read(said: str, toml: str) -> None:
    assert _topology(said) == toml


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["--topology", "sta"], 'no topology "sta"; did you mean "star"?'),
        (["--topology", "written"], 'no topology "written"'),
        (["--topology", "star,hots=3"], 'star takes no "hots"; did you mean "hosts"?'),
        (["--topology", "star,hosts=99"], "hosts: must be from 2 to 64, not 99"),
        (["--topology", "star,hosts=x"], '"x" is not a whole number'),
        (["--topology", "star,3,4"], "star takes no more than 1"),
        (["--topology", "fat-tree,k=3"], "--topology: topology fat-tree: k is even, not 3"),
        (["--topology", "star", "--topo", "tree"], "not allowed with"),
        (["--custom", "x.py"], "--custom needs --topo"),
    ],
)
def test_what_is_none_is_refused(
    words: list[str], reason: str, capsys: pytest.CaptureFixture[str]
) -> None:
    try:
        code = main(["run", *words])
    except SystemExit as left:
        code = int(left.code or 0)
    assert code == 2
    assert reason in capsys.readouterr().err


def test_a_network_without_a_scenario_gets_some_flows() -> None:
    scenario = trial('{ kind = "fat-tree" }', ["links.edge.rate=5 Mbit/s"])
    case = scenario.case()
    assert case.title == "fat-tree, k = 4"
    assert case.build.links["edge"].rate == 5_000_000
    flows = [step.command for step in case.timeline if isinstance(step.command, StartFlow)]
    assert [(each.src, each.dst) for each in flows] == [
        *(("h1", "h9"), ("h2", "h10"), ("h3", "h11"), ("h4", "h12"))
    ]
    assert len(flows) == MOST_FLOWS
    assert trial('{ kind = "linear" }').text.count("start-flow") == 1
