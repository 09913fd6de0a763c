"""A spectator sees whatever a presenter may send within the types of its frames."""

import json
import random
import socket
from typing import Any, get_args

import pytest
from msgspec import inspect, structs

from ccplay.errors import WireError
from ccplay.lesson.course import Phase
from ccplay.plots.table import PLOTS
from ccplay.session.session import Session
from ccplay.share import frames
from ccplay.share.frames import Board, Greeting, Shown
from ccplay.share.sockets import WatchSource
from ccplay.share.web.facts import lesson
from ccplay.ui.app import CcplayApp
from ccplay.ui.audience import Following
from tests.ui.synthetic import SyntheticSource, stream
from tests.ui.test_main import until

_TEXTS = (
    "",
    "1",
    "1/1",
    "r1->r2",
    "a " * 60,
    "界" * 80,
    "[red]",
    "[/]",
    "![x](http://x)",
    "# h\n\n" * 9,
)
FRAMES = 12
_NUMBERS = (0, 1, 2, 9, 1e-300, 0.5, 3.0, 1e6, 1e15)


def anything(kind: inspect.Type, dice: random.Random) -> Any:
    """Return a value of a type, often at its bounds."""
    match kind:
        case inspect.UnionType():
            return anything(dice.choice(kind.types), dice)
        case inspect.BoolType():
            return dice.random() < 0.5
        case inspect.IntType() | inspect.FloatType():
            low = -1e300 if kind.ge is None else kind.ge
            high = 1e300 if kind.le is None else kind.le
            value = min(max(dice.choice((*_NUMBERS, low, high)), low), high)
            return int(value) if isinstance(kind, inspect.IntType) else float(value)
        case inspect.StrType():
            return dice.choice((*PLOTS, *get_args(Phase), *_TEXTS))[: kind.max_length]
        case inspect.TupleType():
            return tuple(anything(each, dice) for each in kind.item_types)
        case inspect.VarTupleType():
            most = min(kind.max_length or 0, dice.choice((0, 1, 3, 30)))
            return tuple(anything(kind.item_type, dice) for _ in range(most))
        case inspect.StructType():
            given = [each for each in kind.fields if each.required or dice.random() < 0.8]
            return kind.cls(**{each.name: anything(each.type, dice) for each in given})
        case _:
            return None


def received(kind: type[Any], dice: random.Random, **fields: Any) -> Any:
    """Return a frame that a spectator accepts, most of it at random."""
    while True:
        try:
            made = structs.replace(anything(inspect.type_info(kind), dice), **fields)
            return frames.decode(frames.encode(made))
        except (WireError, ValueError):
            continue


@pytest.mark.parametrize(
    "page",
    [
        {"choices": ("one", "two"), "right": 2.0},
        {"choices": ("one", "two"), "right": -1.0},
        {"choices": ("one", "two"), "right": 0.5},
        {"right": 1e300},
        {"question": 65536},
        {"low": 1.0, "high": 0.0},
        {"low": -1e308, "high": 1e308},
        {"high": 1.0, "width": 2.0},
        {"answers": [0.0, 1e200]},
    ],
)
def test_a_page_with_an_impossible_answer_is_refused(page: dict[str, Any]) -> None:
    line = json.dumps({"share": "board", "page": 1, **page}, separators=(",", ":"))
    with pytest.raises(WireError):
        frames.decode(line.encode())


def test_any_page_is_shown_in_browsers() -> None:
    dice = random.Random(2)
    for phase in ("", "revealed"):
        for _ in range(150):
            page = received(Board, dice, page=1, phase=phase, ask="Which?")
            json.dumps(lesson(page, votes=True), allow_nan=False)


@pytest.mark.parametrize("size", [(80, 24), (120, 40), (20, 6)])
async def test_any_view_and_any_page_are_drawn(size: tuple[int, int]) -> None:
    dice = random.Random(size[0])
    events = SyntheticSource(stream(seconds=5), live=True)
    one, other = socket.socketpair()
    with one, other:
        source = WatchSource(other, Greeting(protocol=frames.PROTOCOL))
        audience = Following(source)
        app = CcplayApp(Session(events, title="Test"), audience=audience)
        async with app.run_test(size=size) as pilot:
            await until(pilot, lambda: events.drained)
            for _ in range(FRAMES):
                source.view = received(Shown, dice)
                phase = dice.choice(get_args(Phase))
                source.board = received(Board, dice, page=1, phase=phase, ask="Which?")
                audience.follow()
                app.main.follow(0.0)
                app.main.redraw()
                await pilot.press(dice.choice(("1", "enter", "i", "up", "plus", "T", "escape")))
