"""The screen draws any recording that can be read."""

from pathlib import Path

from ccplay.errors import RecordingError
from ccplay.session.archive import read_recording
from ccplay.session.session import Session
from ccplay.state.lab_state import LabState
from ccplay.stream.sources import ReplaySource
from ccplay.ui.app import CcplayApp
from tests.events import PLAYGROUND
from tests.unit.mutants import mutants
from tests.unit.test_strangers import flow, recording

SHARES = (0.0, 0.4, 0.9, 1.0)
"""Positions of the playhead, as fractions of a recording."""
WIDER = 20
"""Number of zoom steps to the widest window, and back."""


async def draw(app: CcplayApp, state: LabState) -> None:
    """Draw a state as a replay would, at several times and widths, with each bottom panel."""
    main = app.main
    main.session._shown = state
    for share in SHARES:
        main.shown.playhead.jump(share * state.now, state.now)
        main.redraw()
    main.action_receiver()
    for step in (-WIDER, WIDER):
        main.shown.playhead.zoom(step, state.now)
        main.redraw()
    main.action_receiver()


async def test_a_mutant_is_drawn(tmp_path: Path) -> None:
    session = Session(ReplaySource(PLAYGROUND))
    app = CcplayApp(session)
    path, drawn = tmp_path / "x", 0
    async with app.run_test(size=(120, 40)) as pilot:
        await app.workers.wait_for_complete(
            [each for each in app.workers if each.group == "session"]
        )
        for mutant in mutants(150, seed=3):
            path.write_bytes(mutant)
            try:
                state = read_recording(path)
            except RecordingError:
                continue
            await draw(app, state)
            drawn += 1
        await pilot.pause()
    assert drawn > 15


async def test_a_network_without_hosts_and_traffic_without_sweeps_are_drawn(tmp_path: Path) -> None:
    path = recording(tmp_path / "x", [{"event": "ready", "t": 0}, flow(1), flow(2, 3.0)])
    session = Session(ReplaySource(PLAYGROUND))
    app = CcplayApp(session)
    async with app.run_test(size=(120, 40)) as pilot:
        await app.workers.wait_for_complete(
            [each for each in app.workers if each.group == "session"]
        )
        await draw(app, read_recording(path))
        await pilot.pause()
        assert app.is_running
