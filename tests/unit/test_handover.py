"""An experiment as data: whoever has it gives the same orders."""

import msgspec
import pytest

from ccplay.cli import main
from ccplay.experiment.plan import plan_runs
from ccplay.experiment.trial import Handover
from tests.unit.test_schedules import scenario

WHOLE = scenario("a", "b", repeats=3)


def handover(*finished: tuple[str, int]) -> Handover:
    return Handover.of(WHOLE.only(["b"]), WHOLE, finished)


def test_it_has_the_runs_that_are_left() -> None:
    assert [run.key for run in handover().runs()] == [("b", 1), ("b", 2), ("b", 3)]
    assert [run.key for run in handover(("b", 2), ("a", 1)).runs()] == [("b", 1), ("b", 3)]


def test_its_orders_are_the_same_on_the_other_side() -> None:
    there = msgspec.json.decode(msgspec.json.encode(handover()), type=Handover)
    here = plan_runs(WHOLE.only(["b"]))
    for ours, theirs in zip(here, there.runs(), strict=True):
        order = there.order(theirs, 2)
        assert order == handover().order(ours, 2)
        assert (order.label, order.attempt) == (f"b-{ours.repeat}", 2)


def test_another_plan_has_another_name_but_not_what_is_left_of_one() -> None:
    assert handover().sha256 == handover(("b", 1)).sha256
    assert handover().sha256 != Handover.of(WHOLE, WHOLE, ()).sha256


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("--detach --out x", "needs a scheduler that outlives"),
        ("--detach --out x --cluster local:2", "needs a scheduler that outlives"),
        ("--attach --cluster tcp://127.0.0.1:1", "needs a run directory"),
        ("--detach --out x --cluster tcp://127.0.0.1:1 --until-ci 5%", "use --repeats"),
        ("--detach --out x --cluster tcp://127.0.0.1:1 --report", "add it to --attach"),
    ],
)
def test_what_it_does_not_go_with_is_refused(
    words: str, told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", "race", *words.split()]) == 2
    assert told in capsys.readouterr().err
