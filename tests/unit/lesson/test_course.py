"""The pages of a course run in any order, each from the file's network, and are judged."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import pytest
from msgspec.structs import replace

from ccplay.lesson import library
from ccplay.lesson.course import TakenLesson
from ccplay.lesson.library import Opened, open_lesson
from ccplay.model.base import Command, Event
from ccplay.model.commands import SetCongestionControl, SetQdisc
from ccplay.model.events import Applied, HostChanged, Log, Ready
from ccplay.model.network import Topology
from ccplay.model.topologies import plan
from ccplay.model.values import Qdisc
from ccplay.session.steps import ByHand
from ccplay.state.lab_state import LabState
from ccplay.traffic.flow import FlowStarted, StartFlow, StopFlow
from tests.events import HELLO, link_changed
from tests.fake_lab import AT_FIRST, PFIFO, SHORT, over
from tests.unit.lesson.test_reading import HEAD, PAGES

NETWORK = plan(Topology(kind="dumbbell", pairs=2))


@pytest.fixture
def opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Opened:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    file = tmp_path / "mine.toml"
    file.write_text(HEAD + PAGES)
    return open_lesson(str(file))


class Lab:
    """The state of a lab, and the course that is its timeline."""

    def __init__(self, course: TakenLesson) -> None:
        self.course, self.state = course, LabState()
        self.sent: list[Command] = []
        self.apply(
            replace(HELLO, network=NETWORK),
            link_changed(0, "r1->r2", AT_FIRST),
            HostChanged(t=0, host="s1", cc="cubic"),
            Ready(t=1.0),
        )

    def apply(self, *events: Event) -> Lab:
        for event in events:
            self.state.apply(event)
        return self

    def pass_time(self, until: float, step: float = 0.25) -> Sequence[Command]:
        """Let time pass, and carry out the commands that are due; return them."""
        found: list[Command] = []
        while self.state.now < until:
            self.apply(Log(t=self.state.now + step, level="info", text=""))
            due = [each.command for each in self.course.due(self.state)]
            self._do(due)
            found += due
        return found

    def _do(self, commands: Iterable[Command]) -> None:
        now = self.state.now
        for command in commands:
            match command:
                case StartFlow(flow=str(name)):
                    self.apply(FlowStarted(t=now, flow=name, src="s1", dst="d1", cc="reno", port=1))
                case StopFlow(flow=name):
                    self.apply(over(now, name))
                case SetQdisc():
                    self.apply(link_changed(now, "r1->r2", AT_FIRST))


def test_steps_wait_for_the_answer_and_run_from_then(opened: Opened) -> None:
    lab = Lab(course := TakenLesson(opened.lesson))
    assert lab.pass_time(5.0) == []
    assert course.phase(lab.state.now) == "asking"
    course.answer(1.0)
    assert course.phase(lab.state.now) == "reading"
    course.advance(lab.state)
    assert course.phase(lab.state.now) == "clearing"
    assert not course.answer(0.0), "nobody answers what they have seen"
    assert lab.pass_time(9.0) == [StartFlow(flow="a")]
    flow = lab.state.flows["a"]
    assert course.turn.span is not None
    # The step is due 1 s after the start of the run.
    assert flow.started == pytest.approx(course.turn.span.began + 1.0, abs=0.6)
    assert course.phase(lab.state.now) == "running"
    lab.pass_time(course.turn.span.ended)
    assert course.phase(lab.state.now) == "ready"
    course.advance(lab.state)
    assert course.phase(lab.state.now) == "revealed"


def test_a_page_begins_with_the_network_of_the_file(opened: Opened) -> None:
    lab = Lab(course := TakenLesson(opened.lesson))
    lab.apply(
        FlowStarted(t=2.0, flow="9", src="s1", dst="d1", cc="reno", port=1),
        link_changed(2.0, "r1->r2", replace(AT_FIRST, qdisc=SHORT)),
    )
    course.run()
    found = lab.pass_time(6.0)
    assert found == [StopFlow(flow="9"), SetQdisc(link="r1->r2", qdisc=PFIFO), StartFlow(flow="a")]


OWN_NETWORK = """
[[lesson.pages]]
title = "Short"
text = "A queue of ten."
run = "5 s"
steps = [
  { at = "0 s", do = "start-flow", flow = "c" },
  { at = "0 s", do = "set-qdisc", kind = "pfifo", limit = 10 },
  { at = "0 s", do = "set-congestion-control", host = "s1", cc = "reno" },
  { at = "1 s", do = "set-qdisc", kind = "pfifo", limit = 20 },
]
"""


def short(limit: int) -> SetQdisc:
    return SetQdisc(qdisc=Qdisc(kind="pfifo", options={"limit": limit}))


@pytest.fixture
def with_own_network(tmp_path: Path) -> Opened:
    file = tmp_path / "own.toml"
    file.write_text(HEAD + OWN_NETWORK + PAGES)
    return open_lesson(str(file))


def test_settings_at_0_s_take_effect_as_the_page_opens_and_traffic_waits(
    with_own_network: Opened,
) -> None:
    lab = Lab(course := TakenLesson(with_own_network.lesson))
    settings = [short(10), SetCongestionControl(host="s1", cc="reno")]
    assert lab.pass_time(4.0) == settings
    assert course.phase(lab.state.now) == "reading"
    course.run()
    assert lab.pass_time(9.0) == [StartFlow(flow="c"), short(20)], "they are not sent again"


def test_what_was_set_by_hand_on_a_page_is_undone_before_its_run(with_own_network: Opened) -> None:
    lab = Lab(course := TakenLesson(with_own_network.lesson))
    opened = lab.pass_time(4.0)
    lab.apply(
        Applied(t=4.0, command=short(99)),
        link_changed(4.0, "r1->r2", replace(AT_FIRST, qdisc=SHORT)),
    )
    course.run()
    undone = [SetQdisc(link="r1->r2", qdisc=PFIFO), *opened]
    assert lab.pass_time(5.0)[: len(undone)] == undone


def test_the_next_page_opens_with_its_own_network(with_own_network: Opened) -> None:
    lab = Lab(course := TakenLesson(with_own_network.lesson))
    course.run()
    lab.pass_time(9.0)
    lab.apply(HostChanged(t=9.0, host="s1", cc="reno"))
    course.reveal(lab.state)
    course.turn_page(1)
    assert lab.pass_time(12.0) == [StopFlow(flow="c"), SetCongestionControl(host="s1", cc="cubic")]
    assert course.phase(lab.state.now) == "asking"


def test_answers_count_until_the_run_starts(opened: Opened) -> None:
    lab = Lab(course := TakenLesson(opened.lesson))
    assert course.answerable
    course.answer(1.0)
    assert course.answerable
    course.run()
    assert not course.answerable
    lab.pass_time(20.0)
    assert not course.answerable
    course.reveal(lab.state)
    assert not course.answerable


def test_a_page_taken_again_has_traffic_of_another_name(opened: Opened) -> None:
    lab = Lab(course := TakenLesson(opened.lesson))
    course.run()
    lab.pass_time(20.0)
    course.reveal(lab.state)
    course.restart_page()
    assert course.phase(lab.state.now) == "asking"
    course.run()
    assert lab.pass_time(24.0) == [StopFlow(flow="a"), StartFlow(flow="a-2")]
    assert course.turn.span is not None
    assert course.turn.span.names == {"a": "a-2"}


def test_a_run_that_is_left_is_void_and_can_be_taken_again(opened: Opened) -> None:
    lab = Lab(course := TakenLesson(opened.lesson))
    course.answer(1.0)
    course.run()
    lab.pass_time(5.0)
    assert course.turn_page(1)
    assert course.turn_page(-1)
    assert course.phase(lab.state.now) == "reading"
    assert course.turn.answer == 1.0


def test_a_page_overrides_what_was_tried_by_hand(opened: Opened) -> None:
    lab = Lab(course := TakenLesson(opened.lesson))
    by_hand = ByHand()
    by_hand.asked.append(StopFlow(flow="a"))
    course.run()
    lab.pass_time(2.5)
    lab.apply(Log(t=5.0, level="info", text=""))
    due = course.due(lab.state)
    assert due
    kept, skipped = by_hand.separate_overridden(due, NETWORK)
    assert (kept, skipped) == (due, [])


def test_what_the_lab_could_take_for_traffic_by_hand_is_reserved(opened: Opened) -> None:
    build = TakenLesson(opened.lesson).build(opened.case.build)
    assert build.reserved == ["a", "p"]


def test_progress_is_taken_up_again(opened: Opened) -> None:
    lab = Lab(course := TakenLesson(opened.lesson))
    course.recording = "/tmp/recording.ccplay"
    course.answer(1.0)
    course.run()
    lab.pass_time(20.0)
    verdict = course.reveal(lab.state)
    course.turn_page(1)
    course.answer(30.0)
    library.save_progress(opened, course)
    again = library.load_progress(opened)
    assert again.at == 1
    assert [turn.answer for turn in again.turns] == [1.0, 30.0]
    assert again.turns[0].verdict == verdict
    assert again.turns[0].run == course.turns[0].run
    assert again.turns[1].verdict is None
    library.delete_progress(opened)
    assert library.load_progress(opened).at == 0


def test_progress_of_a_lesson_that_was_changed_is_not_taken_up(
    opened: Opened, tmp_path: Path
) -> None:
    course = TakenLesson(opened.lesson)
    course.turn_page(1)
    library.save_progress(opened, course)
    file = tmp_path / "mine.toml"
    file.write_text(HEAD + PAGES.replace("How fast?", "How slow?"))
    assert library.load_progress(open_lesson(str(file))).at == 0


@pytest.mark.parametrize("content", [b"", b"[]", b'{"at":-1,"turns":[]}', b'{"at":0,"turns":[{}]}'])
def test_progress_that_is_spoilt_is_left_out(opened: Opened, content: bytes) -> None:
    path = library.path_of(opened)
    path.parent.mkdir(parents=True)
    path.write_bytes(content)
    assert library.load_progress(opened).at == 0
