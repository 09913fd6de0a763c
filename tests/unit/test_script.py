"""A script returns each command of a timeline once, when it is due."""

from msgspec.structs import replace

from ccplay.model.base import Command
from ccplay.model.commands import Build, Mark, SetCongestionControl, SetLink, StartTogether
from ccplay.model.events import Log, Ready
from ccplay.scenario.values import Step
from ccplay.session.steps import Script
from ccplay.state.lab_state import LabState
from ccplay.traffic.download import DownloadEnded, DownloadStarted, StartDownload
from ccplay.traffic.flow import StartFlow, StopFlow
from ccplay.traffic.ping import PingEnded, PingStarted, StartPing
from tests.events import HELLO, folded, link_changed


def at(state: LabState, t: float) -> LabState:
    """Let time pass until ``t``; return the state."""
    state.apply(Log(t=t, level="info", text=""))
    return state


def commands(script: Script, state: LabState) -> list[Command]:
    """Return the commands that are due."""
    return [step.command for step in script.due(state)]


def test_nothing_is_due_before_the_network_stands() -> None:
    script, state = Script([Step(0.0, Mark(text="a"))]), LabState()
    assert commands(script, at(state, 5.0)) == []
    state.apply(Ready(t=6.0))
    assert commands(script, state) == [Mark(text="a")]
    assert commands(script, state) == []
    assert script.finished(state)


def test_time_counts_from_ready_and_steps_come_in_order() -> None:
    """Several steps due at once come in order of their time, then in the file's order."""
    steps = [Step(2.0, Mark(text="c")), Step(1.0, Mark(text="a")), Step(1.0, Mark(text="b"))]
    script, state = Script(steps), LabState()
    state.apply(Ready(t=10.0))
    assert commands(script, at(state, 10.99)) == []
    assert commands(script, at(state, 12.5)) == [Mark(text=text) for text in "abc"]


def test_after_waits_for_the_end_of_traffic() -> None:
    script = Script(
        [
            Step(0.0, StartPing(ping="p1", count=1)),
            Step(1.0, StartDownload(download="w1"), after="p1"),
            Step(0.0, Mark(text="done"), after="w1"),
        ]
    )
    state = folded(Ready(t=0.0))
    assert commands(script, state) == [StartPing(ping="p1", count=1)]
    state.apply(PingStarted(t=0.1, ping="p1", src="h1", dst="h2", interval_s=1.0))
    assert commands(script, at(state, 50.0)) == []
    state.apply(PingEnded(t=51.0, ping="p1", sent=1, lost=0))
    assert commands(script, at(state, 51.9)) == []
    assert commands(script, at(state, 52.0)) == [StartDownload(download="w1")]
    state.apply(DownloadStarted(t=52.1, download="w1", src="h1", dst="h2", bytes=1))
    assert len(script.waiting) == 1
    state.apply(DownloadEnded(t=53.0, download="w1", bytes=1, duration_s=0.9))
    assert commands(script, state) == [Mark(text="done")]
    assert script.finished(state)


def test_a_script_is_finished_when_what_ends_has_ended() -> None:
    """A script waits for the end of limited traffic, not for a flow without limit or stop."""
    script = Script([Step(0.0, StartFlow(flow="1")), Step(0.0, StartPing(ping="p1", count=1))])
    state = folded(Ready(t=0.0))
    assert len(script.due(state)) == 2
    assert not script.finished(state)
    state.apply(PingStarted(t=0.1, ping="p1", src="h1", dst="h2", interval_s=1.0))
    state.apply(PingEnded(t=1.0, ping="p1", sent=1, lost=0))
    assert script.finished(state)


def test_a_stopped_flow_is_waited_for() -> None:
    script = Script([Step(0.0, StartFlow(flow="1")), Step(0.0, StopFlow(flow="1"))])
    state = folded(Ready(t=0.0))
    script.due(state)
    assert not script.finished(state)


def started(build: Build | None = None) -> LabState:
    """Return the state of a lab that can start traffic together and is ready since 10 s."""
    return folded(replace(HELLO, starts_together=True, build=build), Ready(t=10.0))


def test_traffic_is_asked_for_before_its_moment_where_the_lab_prepares_it() -> None:
    steps = [Step(5.0, StartFlow(flow="1")), Step(5.0, StartPing(ping="p"), number=1)]
    script, state = Script(steps), started()
    assert script.due(at(state, 13.6)) == []
    due = script.due(at(state, 13.7))
    assert [(each.at, each.command, each.together) for each in due] == [
        (15.0, StartFlow(flow="1"), True),
        (15.0, StartPing(ping="p"), True),
    ]
    assert script.due(at(state, 16.0)) == []


def test_a_lab_that_prepares_nothing_is_asked_at_the_moment() -> None:
    script, state = Script([Step(5.0, StartFlow(flow="1"))]), LabState()
    state.apply(HELLO)
    state.apply(Ready(t=10.0))
    assert script.due(at(state, 14.9)) == []
    assert [each.together for each in script.due(at(state, 15.0))] == [False]


def test_traffic_is_not_prepared_before_what_precedes_it_is_done() -> None:
    """A flow is not prepared before earlier steps, such as a change of its host's algorithm."""
    change = SetLink(rate=1_000_000)
    steps = [
        Step(4.9, change),
        Step(5.0, StartFlow(flow="1"), number=1),
        Step(5.0, Mark(text="b"), number=2),
    ]
    script, state = Script(steps), started()
    assert commands(script, at(state, 14.8)) == []
    assert commands(script, at(state, 14.9)) == [change, StartFlow(flow="1")]
    assert commands(script, at(state, 15.0)) == [Mark(text="b")]


def test_no_mark_keeps_traffic_from_being_prepared() -> None:
    mark = Mark(text="a flow joins")
    script, state = Script([Step(5.0, mark), Step(5.0, StartFlow(flow="1"), number=1)]), started()
    assert commands(script, at(state, 14.0)) == [StartFlow(flow="1")]
    assert commands(script, at(state, 15.0)) == [mark]


def test_what_starts_with_the_network_is_in_the_first_command_and_not_asked_for_again() -> None:
    change = SetLink(rate=1_000_000)
    steps = [
        Step(0.0, StartFlow(flow="1")),
        Step(0.0, StartPing(ping="p"), number=1),
        Step(0.0, change, number=2),
        Step(0.0, StartFlow(flow="2"), number=3),
    ]
    build = Script(steps).prepare(Build())
    assert build.first == [StartFlow(flow="1"), StartPing(ping="p")]
    assert commands(Script(steps), started(build=build)) == [change, StartFlow(flow="2")]
    # A lab of version 0.1 ignores the traffic in its first command.
    assert commands(Script(steps), started(build=Build())) == [each.command for each in steps]


def test_what_starts_shortly_after_is_in_the_first_command_with_its_moments() -> None:
    """Traffic due soon after the start is prepared with the network.

    Otherwise preparing a flow would take longer than its jitter of some milliseconds.
    """
    change = SetLink(rate=1_000_000)
    later = [Step(1.0, change, number=3), Step(1.2, StartFlow(flow="4"), number=4)]
    on_time = Step(1.0, StartFlow(flow="3"), number=5)
    steps = [
        Step(0.07, StartFlow(flow="1")),
        Step(0.04, StartFlow(flow="2"), number=1),
        Step(0.07, StartPing(ping="p"), number=2),
        *later,
    ]
    build = Script(steps).prepare(Build())
    assert build.first == []
    assert build.soon == [
        StartTogether(at=0.04, commands=[StartFlow(flow="2")]),
        StartTogether(at=0.07, commands=[StartFlow(flow="1"), StartPing(ping="p")]),
    ]
    script, state = Script(steps), started(build=build)
    assert commands(script, state) == []
    assert script.waiting == (*later,)
    # Later traffic can be prepared once the network is ready.
    assert Script([on_time]).prepare(Build()).soon == []
    # A lab whose build ignored ``soon`` is sent these commands.
    assert len(commands(Script(steps), started(build=Build()))) == 3


def test_no_traffic_overtakes_a_change_that_comes_before_it() -> None:
    steps = [
        Step(0.0, StartFlow(flow="1")),
        Step(0.2, SetLink(rate=1_000_000), number=1),
        Step(0.4, StartFlow(flow="2"), number=2),
    ]
    build = Script(steps).prepare(Build())
    assert (build.first, build.soon) == ([StartFlow(flow="1")], [])


def test_on_a_long_path_traffic_is_asked_for_so_much_sooner() -> None:
    """Traffic is requested earlier on a long path, since its connections take RTTs to open."""
    script, state = Script([Step(5.0, StartFlow(flow="1"))]), started()
    link = state.hello.network.observed[0]  # type: ignore[union-attr]
    state.apply(link_changed(10.0, link, delay_us=400_000))
    assert script.due(at(state, 12.4)) == []
    assert [each.at for each in script.due(at(state, 12.5))] == [15.0]


def test_a_mark_keeps_no_traffic_from_starting_with_the_network() -> None:
    steps = [
        Step(0.0, StartPing(ping="p")),
        Step(0.0, Mark(text="a"), number=1),
        Step(0.0, StartFlow(flow="1"), number=2),
    ]
    build = Script(steps).prepare(Build())
    assert build.first == [StartPing(ping="p"), StartFlow(flow="1")]
    assert commands(Script(steps), started(build=build)) == [Mark(text="a")]


def test_the_lab_knows_beforehand_the_algorithms_that_a_script_names() -> None:
    steps = [
        Step(0.0, StartFlow(flow="1", cc="vegas")),
        Step(1.0, StartFlow(flow="2"), number=1),
        Step(5.0, SetCongestionControl(flow="1", cc="htcp"), number=2),
        Step(9.0, StartFlow(flow="3", cc="vegas"), number=3),
    ]
    assert Script(steps).prepare(Build()).prepared == ["vegas", "htcp"]


def test_a_script_is_idle_while_no_step_can_be_due_soon() -> None:
    script, state = (
        Script([Step(10.0, StartFlow(cc="cubic")), Step(20.0, Mark(text="a"))]),
        LabState(),
    )
    assert not script.idle(state)
    state.apply(Ready(t=0.0))
    assert script.idle(at(state, 4.9))
    assert not script.idle(at(state, 9.0))
    assert len(commands(script, at(state, 10.0))) == 1
    assert script.idle(at(state, 11.0))
    assert len(commands(script, at(state, 20.0))) == 1
    assert script.idle(at(state, 20.1))


def test_a_script_with_a_step_after_an_end_is_never_idle() -> None:
    state = folded(Ready(t=0.0))
    assert not Script([Step(50.0, Mark(text="a"), after="p1")]).idle(state)
