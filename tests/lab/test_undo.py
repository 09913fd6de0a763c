"""Undo on a real lab: what the kernel reports is again what it reported before."""

from typing import Any

import pytest
from msgspec.structs import replace

from ccplay.errors import CommandError
from ccplay.model.base import Command
from ccplay.model.commands import (
    Build,
    ChangeMark,
    Mark,
    SetClasses,
    SetCongestionControl,
    SetLink,
    SetQdisc,
)
from ccplay.model.events import Failed
from ccplay.model.network import Topology
from ccplay.model.values import LinkSetting, Qdisc, TrafficClass
from ccplay.session.archive import Bounds, SessionRecorder, read_recording
from ccplay.traffic.flow import StartFlow, StopFlow
from ccplay.traffic.ping import StartPing
from tests.lab.conftest import RunningLab, running
from tests.lab.test_software import Seen

BUILD = Build(
    topology=Topology(kind="linear"),
    links={
        "bottleneck": LinkSetting(
            rate=8_000_000, delay_us=5_000, qdisc=Qdisc(kind="pfifo", options={"limit": 50})
        )
    },
    congestion_controls={"h1": "reno"},
)
SHORT = Qdisc(kind="pfifo", options={"limit": 10})
BYTES = Qdisc(kind="bfifo", options={"limit": 30_000})
CLASSES = [TrafficClass(name="bulk", share=0.5), TrafficClass(name="rest", share=0.5)]
WITH_QUEUES = [replace(each, qdisc=SHORT) for each in CLASSES]
"""A class has no share in a discipline in software, which serves a whole link."""

UNSET = LinkSetting(rate=0, delay_us=0, jitter_us=0, loss=0.0)
"""Settings of a link that nobody has changed."""

SETTINGS: tuple[tuple[Command, ...], ...] = (
    (SetQdisc(qdisc=BYTES), SetQdisc(qdisc=SHORT)),
    (SetLink(rate=3_000_000, delay_us=20_000, jitter_us=1_000, loss=0.25),),
    (SetLink(link="r->h2", delay_us=1_000), SetLink(delay_us=30_000)),
    (SetClasses(classes=CLASSES), SetQdisc(qdisc=BYTES, traffic_class="bulk")),
    (SetLink(link="h1->r", rate=20_000_000), SetQdisc(link="h1->r", qdisc=SHORT)),
    (SetQdisc(link="h1->r", qdisc=SHORT), SetLink(link="h1->r", rate=0)),
    (SetCongestionControl(host="h1", cc="bbr"),),
    (SetQdisc(qdisc=Qdisc(kind="codel.py")), SetClasses(classes=WITH_QUEUES)),
)


def settings(lab: RunningLab) -> dict[str, Any]:
    """Return the present settings of all links and hosts in the kernel."""
    assert lab.state.hello is not None
    links = {each.name: UNSET for each in lab.state.hello.network.links}
    links |= {name: changes[-1].setting for name, changes in lab.state.links.items()}
    return {**links, **lab.state.hosts}


async def does(lab: RunningLab, command: Command) -> None:
    answers = len(lab.state.applied)
    lab.send(command)
    await lab.until(lambda state: len(state.applied) > answers)


async def undoes(lab: RunningLab) -> str:
    answers = len(lab.state.applied)
    said = lab.session.undo()
    # What a direction each is told apart.
    await lab.until(lambda state: len(state.applied) == answers + said.count("; ") + 1)
    return said


async def test_every_setting_goes_back_to_what_the_kernel_reported() -> None:
    async with running(BUILD) as lab:
        for commands in SETTINGS:
            steps = [settings(lab)]
            for command in commands:
                await does(lab, command)
                steps.append(settings(lab))
                assert steps[-1] != steps[-2], command
            for before in reversed(steps[:-1]):
                said = await undoes(lab)
                assert settings(lab) == before, said
        assert not [each.text for each in lab.state.log if each.kind == "error"]


async def test_a_flow_goes_back_and_starts_again_and_a_mark_is_lifted() -> None:
    async with running(BUILD) as lab:
        await does(lab, StartFlow())
        await lab.until(lambda state: "1" in state.flows)
        await does(lab, SetCongestionControl(flow="1", cc="bbr"))
        await does(lab, SetCongestionControl(flow="1", cc="cubic"))
        assert await undoes(lab) == "undo: flow 1 back to bbr"
        await lab.until(lambda state: state.flows["1"].cc == "bbr")
        await does(lab, StopFlow(flow="1"))
        await lab.until(lambda state: state.flows["1"].ended)
        await undoes(lab)
        await lab.until(lambda state: "2" in state.flows and state.flows["2"].cc == "bbr")
        # Before it, flow 1 was switched: it is over.
        with pytest.raises(CommandError, match="flow 1 has ended"):
            lab.session.undo()
        with pytest.raises(CommandError, match="flow 1 has ended"):
            lab.session.undo()
        await does(lab, StartPing())
        assert await undoes(lab) == "undo: ping p1 stops"
        await lab.until(lambda state: state.traffic["p1"].ended is not None)
        await does(lab, Mark(text="here", at=0.02))
        await does(lab, ChangeMark(name="m1", text="there", at=0.01))
        await undoes(lab)
        assert [(e.text, e.t) for e in lab.state.log if e.kind == "mark"] == [("here", 0.02)]
        await undoes(lab)
        assert not [each for each in lab.state.log if each.kind == "mark"]


UNEVEN = Build(
    topology=Topology(kind="linear"),
    links={
        "r->h1": LinkSetting(rate=1_000_000_000, delay_us=0, qdisc=SHORT),
        "r->h2": LinkSetting(rate=10_000_000, delay_us=10_000, qdisc=SHORT),
    },
)


async def test_a_command_that_one_of_its_links_refuses_has_no_effect() -> None:
    """Disciplines in software carry up to 100 Mbit/s: ``r->h1`` is too fast for one."""
    seen = Seen()
    async with running(UNEVEN, seen) as lab:
        before = settings(lab)
        refused: tuple[Command, ...] = (
            SetQdisc(qdisc=Qdisc(kind="cake.py")),
            SetLink(link="r-h2", corrupt=0.1, rate=300_000_000),
            SetLink(rate=20_000_000, reorder=0.1),
        )
        lab.send(*refused)
        await lab.until(lambda _: len(seen.answers) == len(refused))
        assert all(isinstance(each, Failed) for each in seen.answers)
        await lab.swept()
        assert settings(lab) == before
        kinds = seen.sweeps[-1].qdisc
        assert kinds is not None
        assert set(kinds.kind) == {"pfifo"}
        with pytest.raises(CommandError, match="nothing to undo"):
            lab.session.undo()


async def test_new_connections_keep_their_hosts_algorithm_when_its_cable_was_down() -> None:
    """The kernel removes the routes of an interface that goes down, which have the algorithm."""
    async with running(BUILD) as lab:
        await does(lab, SetLink(link="h1-r", down=True))
        await does(lab, SetLink(link="h1-r", down=False))
        await does(lab, StartFlow())
        await lab.until(lambda state: "1" in state.flows)
        assert lab.state.flows["1"].cc == "reno"


async def test_a_session_with_undos_is_in_the_archive_and_reads_back_the_same() -> None:
    kept = SessionRecorder("undone", "Undone", Bounds(keep_free=0))
    async with running(BUILD, kept) as lab:
        await does(lab, SetQdisc(qdisc=SHORT))
        said = await undoes(lab)
        lab.session.redo()
        await lab.until(lambda state: state.links["r->h2"][-1].setting.qdisc == SHORT)
    assert kept.path is not None
    state = read_recording(kept.path)
    assert said in [each.text for each in state.log]
    queues = [each.setting.qdisc for each in state.links["r->h2"]]
    assert queues[-3:] == [SHORT, Qdisc(kind="pfifo", options={"limit": 50}), SHORT]
