"""A misbehaving algorithm is shown with its reason, as of the moment shown."""

from collections.abc import Iterator
from heapq import merge

import pytest

from ccplay.model.base import Event
from ccplay.model.events import Misbehaved
from tests.ui.synthetic import SyntheticSource, stream
from tests.ui.test_main import playing
from tests.ui.test_snapshots import SnapCompare, app_on, at
from tests.ui.view import seek, text_of

WRONG = "keeps cwnd at 1"


def misbehaving(
    flow: str, flows: int = 2, when: tuple[float, float] = (9.0, 15.0)
) -> Iterator[Event]:
    """Return a session of 20 s in which a flow's algorithm misbehaves in the period ``when``."""
    news = [
        Misbehaved(t=when[0], flow=flow, cc="mine", wrong=WRONG),
        Misbehaved(t=when[1], flow=flow, cc="mine"),
    ]
    whole = stream(flows=flows, pairs=min(flows, 8), seconds=20.0)
    return merge(news, whole, key=lambda each: each.t)


async def test_the_flow_has_a_sign_and_the_reason_where_it_is_selected() -> None:
    async with playing(SyntheticSource(misbehaving("1")), start_at=20.0) as (app, pilot):
        assert WRONG not in seek(app, 8.0)
        assert f"! {WRONG}" in (table := seek(app, 12.0))
        assert "▸●!1" in table
        assert WRONG not in seek(app, 16.0)
        seek(app, 12.0)
        await pilot.press("down")
        assert "●!" in text_of(app, "flows")
        assert WRONG not in text_of(app, "flows")
        assert f"flow 1: mine {WRONG}: check its program" in text_of(app, "events")


@pytest.mark.parametrize("flow", ["1", "5", "8"])
async def test_the_reason_is_in_the_table_however_long_that_is(flow: str) -> None:
    """The reason is shown in full below its flow; the last of eight flows starts at 18.5 s."""
    source = SyntheticSource(misbehaving(flow, flows=8, when=(19.0, 20.0)))
    async with playing(source, (80, 24), start_at=20.0) as (app, pilot):
        seek(app, 19.5)
        await pilot.press(*["down"] * (int(flow) - 1))
        lines = text_of(app, "flows").splitlines()
        assert [n for n, line in enumerate(lines) if WRONG in line] == [
            next(n for n, line in enumerate(lines) if "▸" in line) + 1
        ]


@pytest.mark.parametrize("ascii_", [False, True])
def test_how_it_looks(snap_compare: SnapCompare, ascii_: bool) -> None:
    app = app_on(SyntheticSource(misbehaving("1")), ascii=ascii_)
    assert snap_compare(app, terminal_size=(80, 24), run_before=at(app, 12.0))
