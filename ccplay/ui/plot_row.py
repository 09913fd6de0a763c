"""The row of chosen plots on the screen, as many as the terminal has room for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial

from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.widget import Widget

from ccplay.model.series import Series
from ccplay.plots.subjects import series_of
from ccplay.plots.table import CWND, GOODPUT, PLOTS, QUEUE, RTT
from ccplay.share.frames import Shown
from ccplay.state.samples import Queue
from ccplay.traffic.connections import Flow
from ccplay.ui import lineup, plot_pane
from ccplay.ui.plot_canvas import Canvas
from ccplay.ui.plot_pane import Pane, title_row
from ccplay.ui.plot_subjects import adds_up, link_queues
from ccplay.ui.view import View

# --- all plots that the screen offers, in order, and those that it shows --------------------------

PANES: dict[str, Pane] = {name: Pane(plot) for name, plot in PLOTS.items() if plot.on_screen}
"""Panes by name; ``plot_pane.pane`` makes those for own values of algorithms and queues."""

DEFAULT = (CWND.name, QUEUE.name, RTT.name)
"""Plots shown from left to right if the user has chosen none."""

WIDE_DEFAULT = (*DEFAULT, GOODPUT.name)
"""Plots shown from left to right on a wide screen if the user has chosen none."""

LEAST_WIDTH = 26
"""Smallest width in columns of a plot, for its axis and its title."""

_WIDE = 160
"""Smallest width in columns of a screen that shows four plots, as wide as three on 120 columns."""


def plot_at(view: View, name: str) -> Pane:
    """Return the plot of this name; a chosen variable replaces RTT."""
    if name == RTT.name and (own := plot_pane.shown(view)) is not None:
        return plot_pane.pane(view, own)
    return PANES[name] if name in PANES else plot_pane.pane(view, name)


def room(width: int) -> int:
    """Return the number of plots that fit side by side on a screen of ``width`` columns."""
    return max(width // LEAST_WIDTH, 1)


def default_plots(width: int) -> tuple[str, ...]:
    """Return the default plots for a screen of ``width`` columns."""
    return WIDE_DEFAULT if width >= _WIDE else DEFAULT


def toggled(chosen: tuple[str, ...], name: str, room: int) -> tuple[str, ...]:
    """Return the plots shown after ``name`` is toggled: removed if shown, otherwise added last.

    If there is no room, the plot replaces the last one. The only plot can't be removed.
    """
    shown = chosen[:room]
    if name in shown:
        return tuple(each for each in shown if each != name) or shown
    return (*shown[: room - 1], name)


# --- prepares data for long windows of the shown plots, a little in each frame --------------------

_MOST = 8192
"""Largest number of values read from a series in one frame, which takes a millisecond."""


def build(view: View, panes: Sequence[Pane]) -> bool:
    """Prepare a part of one series for long windows; return False if nothing is left to do.

    Without preparation, a key that widens the window or groups flows would stall the screen.
    """
    return any(series.build(_MOST) for series in _series(view, panes))


def _series(view: View, panes: Sequence[Pane]) -> Iterator[Series]:
    flows = lineup.in_window(view)[: lineup.MOST]
    subjects: list[Flow | Queue] = [*link_queues(view), *flows]
    for shown in panes:
        lines = shown.lines(view)
        variables = [*(each.variable for each in lines), *(c.variable for c in shown.plot.counts)]
        for subject in subjects:
            every = (series_of(subject, variable) for variable in variables)
            yield from (series for series in every if series is not None)


# --- the row of chosen plots on the screen, as many as the terminal has room for ------------------


class Band(Horizontal):
    """Plots side by side on one time axis."""

    def __init__(
        self,
        shown: Shown,
        *,
        id: str,  # noqa: A002
        kept: Callable[[], None] = lambda: None,
    ) -> None:
        """Show the plots that ``shown`` names; ``kept`` is called when the user has chosen others.

        If it names none, the plots depend on the width of the screen.
        """
        super().__init__(id=id)
        self._shown = shown
        self.preferred = shown.plots
        """Names of the plots that the user chose for all sessions; empty if none were chosen."""
        self._kept = kept
        self._lent = False
        """Whether a lesson or a presenter has chosen the plots, so that they are no preference."""
        self._began_unasked = not shown.plots
        self._room = len(DEFAULT)
        self._screen_width = 0
        # A removed plot is only hidden, so that it can return quickly.
        names = dict.fromkeys((*(shown.plots or WIDE_DEFAULT), shown.large))
        self._canvases = {name: Canvas(id=name) for name in names if name}

    @property
    def chosen(self) -> tuple[str, ...]:
        """Names of the plots from left to right; those without room at the right are not shown."""
        return self._shown.plots or default_plots(self._screen_width)

    @property
    def displayed(self) -> tuple[str, ...]:
        """Names of the plots that have room, or of the one that fills the whole band."""
        large = self._shown.large
        return (large,) if large else self.chosen[: self._room]

    @property
    def columns(self) -> int:
        """Width of the first plot's time axis in columns."""
        return self._canvases[self.displayed[0]].columns

    @property
    def first_width(self) -> int:
        """Width of the first of several plots in columns; 0 if one plot fills the band."""
        count = len(self.displayed)
        return self._screen_width // count if count > 1 else 0

    def compose(self) -> ComposeResult:
        """Yield the canvases of all plots; those that are not shown are hidden."""
        for name, canvas in self._canvases.items():
            canvas.display = name in self.displayed
            yield canvas

    def lay_out(self, width: int) -> None:
        """Divide the ``width`` columns of the screen evenly among the shown plots."""
        self._screen_width, self._room = width, room(width)
        names = self.displayed
        each = width // len(names)
        for name, canvas in self._canvases.items():
            canvas.display = name in names
            last = name == names[-1]
            canvas.styles.width = width - each * (len(names) - 1) if last else each

    def has(self, place: int) -> bool:
        """Return whether there is room for a plot at this index."""
        return place < min(len(self.chosen), self._room)

    def enlarge(self, place: int) -> None:
        """Enlarge the plot at this index to the whole band; if it is, show all plots again."""
        name = self.chosen[place]
        self._shown.large = "" if name == self._shown.large else name
        self.lay_out(self._screen_width)

    def toggle(self, name: str) -> None:
        """Show a plot, replacing the last one if there is no room, or hide it."""
        names = toggled(self.chosen, name, self._room)
        if self._began_unasked and names == default_plots(self._screen_width):
            names = ()
        self._choose(names)
        if not self._lent:
            self.preferred = self._shown.plots
            self._kept()

    def lend(self, names: tuple[str, ...], large: str = "") -> None:
        """Show these plots from left to right, or ``large`` alone, as a lesson or a presenter asks.

        Without names, show the default. From now on, what is shown is no preference of the user.
        """
        self._lent = True
        self._choose(names, large)

    def _choose(self, names: tuple[str, ...], large: str = "") -> None:
        if (names, large) == (self._shown.plots, self._shown.large):
            return
        self._shown.plots, self._shown.large = names, large
        for name in filter(None, (*names, large)):
            if name not in self._canvases:
                # Algorithms name their variables: the prefix keeps ids unique.
                canvas = Canvas(id=name if name in PANES else f"own-{name}")
                self._canvases[name] = canvas
                self.mount(canvas)
        order = [*self.chosen, *(each for each in self._canvases if each not in self.chosen)]
        places: dict[Widget, int] = {self._canvases[name]: at for at, name in enumerate(order)}
        self.sort_children(key=lambda canvas: places[canvas])
        self.lay_out(self._screen_width)

    def draw(self, view: View) -> None:
        """Draw what has changed in the shown plots."""
        for name in self.displayed:
            self._canvas(name).draw(plot_at(view, name).picture(view))

    def build(self, view: View) -> None:
        """Spend about a millisecond on preparing longer windows of the shown plots."""
        build(view, [plot_at(view, name) for name in self.displayed])

    def _canvas(self, name: str) -> Canvas:
        canvas = self._canvases[name]
        canvas.set_axis(logarithmic=self._shown.logarithmic, held=self._shown.held)
        return canvas

    def draw_titles(self, view: View) -> None:
        """Draw the title lines of the shown plots."""
        for name in self.displayed:
            canvas = self._canvas(name)
            words = canvas.axis_words
            left, right = title_row(plot_at(view, name), view, canvas.width - 2 - len(words))
            canvas.title([*left, (words, f"bold {view.ink('text')}")], right)

    def adds_up(self, view: View) -> bool:
        """Return whether any shown plot can be stacked."""
        panes = [plot_at(view, name) for name in self.displayed]
        return any(adds_up(view, line) for pane in panes for line in pane.lines(view))

    def offers(self, view: View) -> Iterator[tuple[str, str, Callable[[], object]]]:
        """Yield the palette's entry for each plot: its text, help, and function that toggles it."""
        own = [name for name in plot_pane.choices(view) if name is not None]
        for name in dict.fromkeys([*PANES, *own, *self.displayed]):
            plot = (PANES.get(name) or plot_pane.pane(view, name)).plot
            if name in self.displayed:
                what = "remove it"
            elif len(self.displayed) < self._room:
                what = "next to the others"
            else:
                what = f"in place of {plot_at(view, self.displayed[-1]).plot.title}"
            yield f"plot: {plot.title}", f"{what}: {plot.help}", partial(self.toggle, name)
