"""The time to draw a window of an hour: each plot of the screen, against Textual's ``Sparkline``.

The hour is made from a synthetic session and drawn in this process; times are CPU times. The peer
draws one flow's values, as wide as the plot; the plot has all flows, bands, axes and marks.
"""

import asyncio
import gc
import time
from collections.abc import Callable

from msgspec.structs import replace
from rich.console import Console
from rich.table import Table
from textual.renderables.sparkline import Sparkline

from ccplay.session.session import Session
from ccplay.ui import plot_row
from ccplay.ui.app import CcplayApp
from ccplay.ui.plot_canvas import Canvas
from ccplay.ui.plot_row import plot_at
from ccplay.ui.preferences import Preferences
from tests.bench._figures import table
from tests.bench._hour import FLOWS, HOUR_S, HZ, hour
from tests.ui.synthetic import SyntheticSource, stream

PLOTS = ("cwnd", "throughput", "queue", "rtt")
SIZE = (120, 40)
AIM_MS = 5
_SAID_S = 45.0
_TIMES = 15


def hours() -> Table:
    """Draw an hour and return the table of times."""
    return asyncio.run(_hours())


async def _hours() -> Table:
    heads = ("plot, cells", "first ms", "later ms", "first G", "later G", "Sparkline ms")
    sheet = table(
        f"an hour's window of {FLOWS} flows at {HZ} Hz, {len(PLOTS)} plots on {SIZE[0]}x{SIZE[1]},"
        " CPU; G: in groups",
        f"{AIM_MS} ms a plot",
        heads,
    )
    said = list(stream(flows=FLOWS, pairs=FLOWS, hz=HZ, seconds=_SAID_S))
    source = SyntheticSource(hour(said))
    app = CcplayApp(Session(source), preferences=Preferences(plots=PLOTS), fps=1e-3)
    async with app.run_test(size=SIZE) as pilot:
        while not source.drained:
            await pilot.pause(0.05)
        _widen(app)
        # On a real screen, frames do this before the user looks at an hour.
        panes = [plot_at(app.main.view, name) for name in PLOTS]
        while plot_row.build(app.main.view, panes):
            pass
        # Garbage from making the hour must not be collected while a plot is drawn.
        gc.collect()
        gc.disable()
        for name in PLOTS:
            canvas = app.main.query_one(f"#{name}", Canvas)
            cells = f"{name}, {canvas.columns}x{canvas.lines}"
            figures = [*_drawn(app, canvas, grouped=False), *_drawn(app, canvas, grouped=True)]
            figures.append(_peer(app, canvas.columns))
            sheet.add_row(cells, *(f"{each:.1f}" for each in figures))
        gc.enable()
    return sheet


def _widen(app: CcplayApp) -> None:
    """Show the whole hour."""
    now, head = app.session.state.now, app.main.shown.playhead
    head.jump(now, now)
    head.width, head.left, head.seen = HOUR_S, now - HOUR_S, now


def _drawn(app: CcplayApp, canvas: Canvas, *, grouped: bool) -> tuple[float, float]:
    """Return the ms of the first drawing of a whole plot, and the least of later drawings."""
    view = app.main.view
    view.shown.listing = replace(view.shown.listing, grouped=grouped)
    assert canvas.id is not None
    pane = plot_at(view, canvas.id)

    def draw() -> None:
        canvas.blank(canvas.width, canvas.height)
        canvas.draw(pane.picture(view))

    times = [_ms(draw) for _ in range(_TIMES)]
    return times[0], min(times[1:])


def _peer(app: CcplayApp, columns: int) -> float:
    """Return the ms that Textual's ``Sparkline`` takes for an hour of one flow."""
    state = app.session.state
    series, end, console = state.flows["1"].series["cwnd"], state.sweeps.end, Console()

    def draw() -> None:
        values = series.values(end - int(HOUR_S * HZ), end)
        list(console.render(Sparkline(values, width=columns)))

    return min(_ms(draw) for _ in range(3))


def _ms(work: Callable[[], None]) -> float:
    began = time.process_time()
    work()
    return (time.process_time() - began) * 1e3
