"""The table of an evaluation on the screen: it fills, tells of each row, and replays its runs."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot
from textual.widgets import DataTable, Static

from ccplay.analysis.results import Result
from ccplay.errors import UnsupportedError
from ccplay.evaluation import evaluating
from ccplay.evaluation.criteria import Subject, criterion_result, judge, load_criterion
from ccplay.evaluation.evaluating import Planned, Wanted, evaluate_on_screen, fill_row, waiting_row
from ccplay.scenario.library import criteria
from ccplay.stream.sources import Source
from ccplay.ui.evaluation_table import EvaluationBoard, EvaluationTable
from tests.terminals import ENTERS, LEAVES, PATIENCE_S, on_terminal
from tests.ui.test_main import until
from tests.unit.test_evaluation import result, wanting

SIZES = [(80, 24), (120, 40)]
CUBIC, RENO = Subject("cubic", "cubic"), Subject("reno", "reno")


def planned(name: str) -> Planned:
    scenario = load_criterion(criteria()[name], [RENO, CUBIC], ["cubic"], quick=True)
    return Planned(name, scenario, (RENO, CUBIC))


def board(*names: str) -> EvaluationBoard:
    rows = {name: waiting_row(planned(name)) for name in names}
    return EvaluationBoard(title="Evaluation of reno", rows=rows, left="about 3 min left")


def finish(shown: EvaluationBoard, name: str, value: float) -> None:
    """Put a verdict into a row, by runs that are as they would be stored."""
    each = planned(name)
    metric = each.scenario.cases[0].metrics[0]
    runs = result(each.scenario, {"": [value]}, metric)
    judged = judge(each.scenario, runs, each.subjects, folder=name)
    row = criterion_result(name, each.scenario, judged, "ccplay run x")
    shown.rows[name].verdict = row.verdict
    fill_row(shown.rows[name], row, Path("/out"))
    shown.changed = True


def table(shown: EvaluationBoard) -> EvaluationTable:
    return EvaluationTable(shown, lambda path: ["replay", path.name])


def text(app: EvaluationTable, name: str) -> str:
    return str(app.query_one(f"#{name}", Static).content)


def cells(app: EvaluationTable, row: str) -> list[str]:
    drawn = app.query_one(DataTable)
    return [str(each) for each in drawn.get_row(row)] if drawn.rows else [""] * 6


@pytest.mark.parametrize("size", SIZES, ids=str)
async def test_the_table_fills_while_runs_finish(size: tuple[int, int]) -> None:
    shown = board("fairness", "late-comer")
    app = table(shown)
    async with app.run_test(size=size) as pilot:
        await until(pilot, lambda: "0 of" in text(app, "head"))
        assert cells(app, "fairness")[2] == ""
        assert text(app, "head").startswith("Evaluation of reno  about 3 min left")
        finish(shown, "fairness", 0.5)
        await until(pilot, lambda: cells(app, "fairness")[2] == "fail")
        assert cells(app, "fairness")[3].startswith("0.5")
        shown.rows["late-comer"].runs, shown.changed = (135, 180), True
        await until(pilot, lambda: app._widths[-1] == len("135/180"))
        assert "1 fail" in text(app, "head")
        assert cells(app, "late-comer")[2] == ""
        assert app.query_one(DataTable).virtual_size.width <= size[0], "no row is cut off"


async def test_what_is_known_of_the_selected_row_is_below() -> None:
    shown = board("fairness", "late-comer")
    finish(shown, "fairness", 0.5)
    app = table(shown)
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: "Do flows of it share a link fairly?" in text(app, "details"))
        assert "Holds if at least 0.8." in text(app, "details")
        assert "the evaluation should explore" in text(app, "details")
        await pilot.press("down")
        await until(pilot, lambda: "comes later" in text(app, "details"))
        # The cursor stays on its row when columns are shared anew.
        await pilot.resize_terminal(120, 40)
        await until(pilot, lambda: len(app.query_one(DataTable).columns) == 6)
        await until(pilot, lambda: "comes later" in text(app, "details"))


async def test_enter_replays_the_run_that_decided(monkeypatch: pytest.MonkeyPatch) -> None:
    lent: list[list[str]] = []
    monkeypatch.setattr(EvaluationTable, "_lend", lambda _, argv: lent.append(argv))
    shown = board("fairness", "late-comer")
    finish(shown, "fairness", 0.5)
    shown.rows["fairness"].recording = Path("/out/fairness/runs/1.ccplay")
    app = table(shown)
    async with app.run_test(size=(80, 24), notifications=True) as pilot:
        await until(pilot, lambda: cells(app, "fairness")[2] == "fail")
        await pilot.press("enter")
        await until(pilot, lambda: lent == [["replay", "1.ccplay"]])
        await pilot.press("down", "enter")
        await until(pilot, lambda: bool(app.query("Toast")))
        assert len(lent) == 1, "there is nothing to replay yet"


ALONE = """
import sys
from pathlib import Path
from ccplay.ui.evaluation_table import CriterionRow, EvaluationBoard, EvaluationTable

row = CriterionRow(section="6", level="SHOULD", question="Is it good?", recording=Path("x"))
board = EvaluationBoard(title="Evaluation", rows={"a": row}, over=True)
replay = [sys.executable, "-c", "input('replaying')"]
EvaluationTable(board, lambda _: replay).run()
"""


def test_the_terminal_is_lent_to_the_replay_and_taken_back() -> None:
    with on_terminal([sys.executable, "-c", ALONE]) as shown:
        shown.read_until_shown("Is it good?")
        shown.type(b"\r")
        assert LEAVES in shown.read_until(b"replaying")
        shown.type(b"\n")
        shown.read_until(ENTERS, b"Is it good?")
        shown.type(b"q")
        code, rest = shown.ended(PATIENCE_S)
    assert (code, LEAVES in rest) == (0, True)


def wanted(out: Path) -> Wanted:
    return wanting("algorithm", out, quick=True, only=("fairness", "harm"))


def planted(
    monkeypatch: pytest.MonkeyPatch, leave: Callable[[EvaluationBoard], bool], key: str = "q"
) -> None:
    """Let criteria have planted runs, and a user press a key once ``leave`` holds."""
    show = EvaluationTable.run_async

    async def measure(going: object, each: Planned, *_: object) -> Result:
        await asyncio.sleep(0)
        metric = each.scenario.cases[0].metrics[0]
        if "." in metric:
            raise UnsupportedError("this kernel lacks BBR")
        return result(each.scenario, {"": [0.5]}, metric)

    async def headless(table: EvaluationTable) -> int | None:
        async def press(pilot: Pilot[object]) -> None:
            await until(pilot, lambda: leave(table.board))
            await pilot.press(key)

        return await show(table, headless=True, size=(80, 24), auto_pilot=press)

    monkeypatch.setattr(evaluating, "_measure", measure)
    monkeypatch.setattr(EvaluationTable, "run_async", headless)


async def test_an_evaluation_fills_the_table_and_stays_until_the_user_leaves(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    boards: list[EvaluationBoard] = []

    def is_over(board: EvaluationBoard) -> bool:
        boards.append(board)
        return board.over

    planted(monkeypatch, is_over)
    found, code = await evaluate_on_screen(wanted(tmp_path), refuse)
    assert [each.name for each in found.criteria] == ["fairness", "harm"]
    assert [each.verdict for each in boards[-1].rows.values()] == ["fail", "not evaluated"]
    assert boards[-1].rows["harm"].details[0] == "this kernel lacks BBR"
    assert code == 0, "what failed is no MUST"


async def test_who_leaves_early_keeps_what_is_done(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    planted(monkeypatch, lambda _: True, "ctrl+c")
    never = asyncio.Event()

    async def measure(going: Any, *_: object) -> Result:
        await going.stop.wait()
        never.set()
        return result(planned("fairness").scenario, {})

    monkeypatch.setattr(evaluating, "_measure", measure)
    found, code = await evaluate_on_screen(wanted(tmp_path), refuse)
    assert never.is_set()
    assert (found.criteria, code) == ([], 130)
    assert f"finished runs are kept in {tmp_path}" in capsys.readouterr().err


def refuse(_: object) -> Source:
    raise AssertionError("no lab is needed")
