"""From play to script: what was done by hand, saved and run again, is done again."""

import tempfile
from pathlib import Path

from ccplay.analysis.trust import judge
from ccplay.model.base import Command
from ccplay.model.commands import Build, Mark, SetCongestionControl, SetLink, SetQdisc
from ccplay.model.events import Applied, Ready
from ccplay.model.network import Topology
from ccplay.model.values import LinkSetting, Qdisc
from ccplay.scenario.reading import load
from ccplay.scenario.writing import write
from ccplay.session.archive import read_recording
from ccplay.stream import wire
from ccplay.stream.sources import ReplaySource
from ccplay.traffic.download import StartDownload
from ccplay.traffic.flow import StartFlow, StopFlow
from ccplay.traffic.ping import StartPing
from tests.lab.commands import run
from tests.lab.conftest import RunningLab, running
from tests.lab.trust import note, physical

BUILD = Build(
    topology=Topology(kind="linear"),
    links={
        "bottleneck": LinkSetting(
            rate=8_000_000, delay_us=5_000, qdisc=Qdisc(kind="pfifo", options={"limit": 50})
        )
    },
    congestion_controls={"h1": "reno"},
)

LATE_S = 0.1
"""Seconds by which a step may begin later than in the session, on a busy machine."""


async def by_hand(lab: RunningLab) -> None:
    """Do everything that a user can do, and wait until all traffic has ended."""
    for command in (
        StartPing(count=3, interval_s=0.2),
        StartFlow(),
        SetCongestionControl(cc="bbr", flow="1"),
        SetQdisc(qdisc=Qdisc(kind="bfifo", options={"limit": 30_000})),
        SetLink(rate=5_000_000, delay_us=10_000),
        StartDownload(bytes=50_000),
        Mark(text='all there is: "quotes", too'),
        StartFlow(bytes=200_000, streams=2),
        StopFlow(flow="1"),
    ):
        lab.send(command)
        await lab.run_for(0.4)
    await lab.until(lambda state: len(state.applied) == 9 and {"1", "2", "2/2"} <= set(state.flows))
    await lab.until(lambda state: all(flow.ended for flow in state.flows.values()))


async def applied(path: Path) -> list[tuple[float, Applied]]:
    """Return the commands in a recording with the seconds from the network's start to theirs.

    Their ends depend on the machine, because programs have to start.
    """
    events = [event async for event in ReplaySource(path).events()]
    (ready,) = (event.t for event in events if isinstance(event, Ready))
    done = [event for event in events if isinstance(event, Applied)]
    return [(event.t - event.took_s - ready, event) for event in done]


def said(command: Command) -> Command:
    """Return a command as written in a scenario, where marks have no names."""
    return Mark(text=command.text) if isinstance(command, Mark) else command


@physical
async def test_a_session_by_hand_runs_again(tmp_path: Path) -> None:
    """The same commands in the same order, each within a tenth of a second of its moment."""
    tmp_path = Path(tempfile.mkdtemp(dir=tmp_path))
    async with running(BUILD) as lab:
        await by_hand(lab)
        state = lab.state
        path = tmp_path / "again.toml"
        path.write_text(write(state, title="by hand"))
    assert state.ready_at is not None
    played = [(each.t - each.took_s - state.ready_at, each) for each in state.applied]
    assert len(played) == 9

    recording = tmp_path / "again.ccplay"
    code, _, talk = await run("run", path, "--json", "--record", recording)
    assert code == 0, talk
    note(judge(read_recording(recording)))
    again = await applied(recording)
    assert [each.command for _, each in again] == [each.command for _, each in played]
    late = {
        wire.encode(two.command): t2 - t1 for (t1, _), (t2, two) in zip(played, again, strict=True)
    }
    assert max(map(abs, late.values())) < LATE_S, late

    twice = tmp_path / "twice.toml"
    code, _, talk = await run("script", recording, "--to", twice)
    assert (code, talk) == (0, f"to repeat it: ccplay run {twice}\n")
    case = load(twice).case()
    assert case.build == BUILD
    assert [each.command for each in case.timeline] == [said(each.command) for _, each in played]
    code, _, talk = await run("script", recording, "--to", twice)
    assert code == 2
    assert "already exists" in talk
