"""Classes and captures in scenario files are read, and refused if they are impossible."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from ccplay.errors import ScenarioError, UnsupportedError, UsageError
from ccplay.model.commands import SetClasses, SetQdisc, StartCapture, StopCapture
from ccplay.model.values import Feature, Qdisc, TrafficClass
from ccplay.scenario.reading import parse
from ccplay.scenario.rules import check_against
from ccplay.scenario.timeline import captured
from ccplay.scenario.values import Scenario
from tests.events import CAPABILITIES

HEAD = """
title = "T"
duration = "10 s"
topology = { kind = "linear" }
"""

TWO = """[
  { name = "bulk", share = "50 %", traffic = ["flows", "w1"] },
  { name = "rest", share = "30 %", queue = { kind = "bfifo", limit = "30 kB" } },
]"""

TAKEN = ', traffic = ["flows", "w1"]'


def read(text: str) -> Scenario:
    return parse(HEAD + text, Path("x.toml"))


def refusal(text: str) -> str:
    with pytest.raises(ScenarioError) as caught:
        read(text)
    return str(caught.value)


def steps(*lines: str) -> str:
    return "timeline = [\n" + "".join(f"  {{ at = '1 s', {line} }},\n" for line in lines) + "]\n"


def test_classes_are_read_with_shares_traffic_and_queues() -> None:
    (case,) = read(f"links.bottleneck.classes = {TWO}").cases
    assert case.build.links["bottleneck"].classes == [
        TrafficClass(name="bulk", share=0.5, traffic=["flows", "w1"]),
        TrafficClass(name="rest", share=0.3, qdisc=Qdisc(kind="bfifo", options={"limit": 30_000})),
    ]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (f"links.bottleneck.classes = {TWO}".replace('"bfifo"', '"codel.py"'), 7),
        (
            f"links.bottleneck = {{ queue = {{ kind = 'codel.py' }}, classes = {TWO} }}".replace(
                "\n", ""
            ),
            5,
        ),
        (steps("do = 'set-qdisc', link = 'r->h2', class = 'rest', kind = 'codel.py'"), 6),
    ],
)
def test_a_discipline_in_software_is_refused_for_a_class(text: str, line: int) -> None:
    """In its own queue, as the queue of a link that a class takes over, and in a step."""
    said = refusal(text.replace(', limit = "30 kB"', ""))
    assert f"x.toml:{line}" in said
    assert "codel.py runs in software, which serves a whole link, never one of its classes" in said
    assert said.count("runs in software") == 1


def test_steps_set_classes_and_a_classs_queue() -> None:
    (case,) = read(
        steps(
            f"do = 'set-classes', link = 'r->h2', classes = {TWO}",
            "do = 'set-qdisc', link = 'r->h2', class = 'rest', kind = 'pfifo', limit = 5",
            "do = 'set-classes', classes = []",
        )
    ).cases
    shared, queue, single = (step.command for step in case.timeline)
    assert isinstance(shared, SetClasses)
    assert [each.name for each in shared.classes] == ["bulk", "rest"]
    assert isinstance(queue, SetQdisc)
    assert (queue.traffic_class, queue.qdisc.options) == ("rest", {"limit": 5})
    assert single == SetClasses(classes=[])


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("links.bottleneck.classes = 3", "x.toml:5: links.bottleneck.classes: must be a list"),
        ("links.bottleneck.classes = [{ share = '5 %' }]", "classes[0]: name is missing"),
        ("links.bottleneck.classes = [{ name = 'a', share = 0.5 }]", "[0].share: 0.5 has no unit"),
        ("links.bottleneck.classes = [{ name = 'a', share = '0 %' }]", "must be from 1 % to 100 %"),
        (f"links.bottleneck.classes = {TWO}".replace(TAKEN, ""), "classes[0]: traffic is missing"),
        (f"links.bottleneck.classes = {TWO.replace('rest', 'bulk')}", "another class is named"),
        (f"links.bottleneck.classes = {TWO.replace('30 %', '60 %')}", "add up to 110 %"),
        (
            f"links.bottleneck.classes = {TWO}".replace("queue", "traffic = ['w1'], queue"),
            'classes[1].traffic: "w1" is in class "bulk" already',
        ),
        (f"links.h1-r.classes = {TWO}", "links.h1-r.classes: share a rate"),
        (steps("do = 'set-classes'"), "timeline[0]: classes is missing"),
        (steps(f"do = 'set-classes', link = 'h1-r', classes = {TWO}"), "the link has none"),
        (
            f"links.bottleneck.classes = {TWO}\n"
            + steps("do = 'set-qdisc', kind = 'pfifo', limit = 5"),
            'timeline[0]: class is missing: the link has a queue for each of "bulk", "rest"',
        ),
        (
            f"links.bottleneck.classes = {TWO}\n"
            + steps("do = 'set-qdisc', kind = 'pfifo', class = 'bulkk'"),
            'timeline[0].class: the link has no class "bulkk"; did you mean "bulk"?',
        ),
        (
            steps("do = 'set-qdisc', kind = 'pfifo', class = 'bulk'"),
            'timeline[0].class: the link has no class "bulk"',
        ),
        (steps("do = 'stop-capture', capture = 'c1'"), 'no capture "c1" is ever started'),
        (steps("do = 'start-capture', size = '1 GB'"), "must be from 10 kB to 100 MB"),
        (
            steps("do = 'start-capture', snaplen = 1"),
            "timeline[0].snaplen: must be from 64 B to 65535 B, not 1 B",
        ),
        (steps(*["do = 'start-capture'"] * 17), "timeline[16]: more than 16 captures"),
        (steps("do = 'start-capture', path = '/etc/x'"), "timeline[0].path: unknown key"),
        (steps("do = 'start-capture', capture = '../x'"), "timeline[0].capture: "),
        (
            steps("do = 'start-capture', capture = 'a'", "do = 'start-capture', capture = 'a'"),
            'the name "a" is taken by timeline[0]',
        ),
    ],
)
def test_mistakes_are_reported_with_their_place(text: str, told: str) -> None:
    assert told in refusal(text)


def test_captures_are_read() -> None:
    (case,) = read(
        steps(
            "do = 'start-capture', capture = 'a', link = 'h1-r', size = '1 MB', snaplen = 96",
            "do = 'stop-capture', capture = 'a'",
        )
    ).cases
    assert [step.command for step in case.timeline] == [
        StartCapture(capture="a", link="h1-r", max_bytes=1_000_000, snaplen=96),
        StopCapture(capture="a"),
    ]


def test_captures_asked_for_come_first_under_names_of_their_own() -> None:
    scenario = read(steps("do = 'start-capture', capture = 'c1'"))
    (case,) = captured(scenario, ["bottleneck", "h1-r"]).cases
    commands = [step.command for step in case.timeline]
    assert commands[:2] == [StartCapture(capture="c2"), StartCapture(capture="c3", link="h1-r")]
    assert [step.at_s for step in case.timeline] == [0.0, 0.0, 1.0]
    with pytest.raises(UsageError, match="there is no link"):
        captured(scenario, ["h1-h9"])


def test_a_kernel_without_classifier_is_reported_before_anything_starts() -> None:
    lacking = Feature("u32", available=False, reason="no cls_u32", remedy="modprobe cls_u32")
    there = [Feature(name="bfifo", available=True)]
    capabilities = replace(CAPABILITIES, qdiscs=there, classifiers=[lacking])
    with pytest.raises(UnsupportedError, match=r'classifier "u32".*no cls_u32; modprobe cls_u32'):
        check_against(read(f"links.bottleneck.classes = {TWO}"), capabilities)
