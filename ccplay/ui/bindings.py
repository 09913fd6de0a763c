"""The keys of the app and of its main screen: what they do, and the names for remapping them."""

from __future__ import annotations

from textual.binding import Binding, BindingType

_VALUES = "Variables of algorithms in place of RTT (V backwards)"
_LOGARITHM = "Logarithmic value axes, or linear ones"
_PATH = "The next of several paths for the selected traffic"
_EXPLAIN = "What the selected flow is doing, and why"
_HOLD = "Hold the value axes, or release them"

APP: list[BindingType] = [
    Binding("ctrl+q", "quit", "Quit", id="quit", priority=True, tooltip="End the lab and leave"),
    Binding(
        "ctrl+z",
        "suspend_process",
        "Suspend",
        id="suspend",
        priority=True,
        tooltip="To the shell; the lab keeps running, fg shows it again",
    ),
]
"""Keys that work on every screen."""

MAIN: list[BindingType] = [
    Binding("f", "dialog('FlowDialog')", "New flow", id="flow"),
    Binding("w", "dialog('DownloadDialog')", "Download", id="download"),
    Binding("p", "dialog('PingDialog')", "Ping", id="ping"),
    Binding("u", "dialog('UdpDialog')", "UDP cross traffic", id="udp"),
    Binding("n", "dialog('ShortFlowsDialog')", "Short flows", id="short-flows"),
    Binding("c", "dialog('CongestionDialog')", "Congestion control", id="congestion"),
    Binding("q", "dialog('QueueDialog')", "Queue discipline", id="queue"),
    Binding("l", "dialog('LinkDialog')", "Link", id="link"),
    Binding("P", "path", "Another path, of several", id="path", tooltip=_PATH),
    Binding("k", "capture", "Capture packets, or stop", id="capture"),
    Binding("h", "trace", "Trace every ACK, or stop", id="trace"),
    Binding("m", "mark", "Set or change a mark", id="mark"),
    Binding("enter", "put_mark", "Put the mark here", id="put-mark"),
    Binding("escape", "leave_mark", "Leave the mark where it was", id="leave-mark"),
    Binding("escape", "show_all", "Show all flows again", id="show-all"),
    Binding("g", "ghost", "Ghost", id="ghost", priority=True, tooltip="Earlier run as a ghost"),
    Binding("x", "stop", "Stop the selected traffic", id="stop"),
    Binding("z", "undo", "Undo your last change", id="undo"),
    Binding("Z", "redo", "Redo what you undid", id="redo"),
    Binding("space", "freeze", "Freeze, pause, continue", id="freeze"),
    Binding("left", "scrub(-1)", "Back in time", id="back"),
    Binding("right", "scrub(1)", "Forward in time", id="forward"),
    Binding("shift+left", "scrub_far(-1)", "Far back in time", id="far-back"),
    Binding("shift+right", "scrub_far(1)", "Far forward in time", id="far-forward"),
    Binding("home", "seek_start", "To the start", id="start"),
    Binding("end", "seek_end", "To the end, live again", id="end"),
    Binding("plus,equals_sign", "zoom(1)", "Shorter time axis", id="zoom-in"),
    Binding("minus", "zoom(-1)", "Longer time axis", id="zoom-out"),
    Binding("left_square_bracket,less_than_sign", "speed(-1)", "Slower replay", id="slower"),
    Binding("right_square_bracket,greater_than_sign", "speed(1)", "Faster replay", id="faster"),
    Binding("down,tab", "select_flow(1)", "Next in the table", id="next-flow"),
    Binding("up,shift+tab", "select_flow(-1)", "Previous in the table", id="previous-flow"),
    Binding("o", "alone", "The selected flow alone", id="alone"),
    Binding("G", "groups", "Group by algorithm", id="groups"),
    Binding("T", "stack", "Stack rates, classes of a queue", id="stack"),
    Binding("d", "sort", "Sort by the next column", id="sort"),
    Binding("D", "reverse", "Reverse the order", id="reverse"),
    Binding("slash", "filter", "Filter flows", id="filter"),
    Binding("b", "other_queue", "Next observed queue", id="way-back"),
    Binding("ctrl+n", "new_network", "New network…", id="network"),
    Binding("N", "map", "Network drawn large, or plots", id="map"),
    Binding("v", "variable(1)", "Variables of algorithms", id="variable", tooltip=_VALUES),
    Binding("V", "variable(-1)", id="variable-before"),
    Binding("L", "logarithm", "Logarithmic value axes", id="logarithm", tooltip=_LOGARITHM),
    Binding("H", "hold", "Hold the value axes", id="hold", tooltip=_HOLD),
    *(
        Binding(
            str(place + 1),
            f"enlarge({place})",
            f"Plot {place + 1} alone",
            id=f"plot-{place + 1}",
            tooltip="Only the plot in this place, or all again",
        )
        for place in range(9)
    ),
    Binding("t", "next_look", "Next theme", id="theme"),
    Binding("B", "stroke", "Bold lines on and off", id="stroke"),
    Binding("a", "ascii", "ASCII on and off", id="ascii"),
    Binding("r", "receiver", "Receiver's table or events", id="receiver"),
    Binding("e", "events", "Events in full", id="events", tooltip="Events and messages in full"),
    Binding("y", "theory", "Theory: W(t) and Reno's line", id="theory"),
    Binding("i", "explain", "Explain", id="explain", tooltip=_EXPLAIN),
    Binding("W", "share", "Share", id="share", tooltip="Share this session, or stop sharing"),
    Binding(
        "ctrl+b", "browsers", "Watch in a browser", id="browsers", tooltip="A link for browsers"
    ),
    Binding("F", "follow", "Follow", id="follow", tooltip="Follow the presenter again"),
    Binding("M", "point", "Point", id="point", tooltip="Point at this moment on all screens"),
    Binding("enter", "lesson_next", "Lesson: answer, run, reveal, next page", id="lesson-next"),
    Binding("backspace", "lesson_back", "Lesson: the page before", id="lesson-back"),
    Binding("R", "lesson_again", "Lesson: this page again", id="lesson-again"),
    Binding("pagedown", "lesson_scroll(1)", "Lesson: scroll the page", id="lesson-down"),
    Binding("pageup", "lesson_scroll(-1)", id="lesson-up"),
    Binding("s", "picture", "Save a picture (SVG, PNG)", id="picture"),
    Binding("S", "save_scenario", "Save as scenario", id="scenario"),
    Binding("question_mark", "help", "Help", id="help"),
]
"""Keys of the main screen."""

COPY = Binding("ctrl+y", "copy", "Copy the tc line", priority=True)
"""Key that copies a command of tc(8)."""
