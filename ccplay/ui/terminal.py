"""The terminal of the screen, which may stall, close or go to the background."""

from __future__ import annotations

import contextlib
import os
import re
import select
import signal
import sys
import termios
import threading
import time
from codecs import getincrementaldecoder
from collections import deque
from collections.abc import Callable, Iterator
from contextvars import copy_context
from typing import Any, cast

from textual.app import App
from textual.events import Key
from textual.message import Message

from ccplay.ui.help import OrderlyApp
from ccplay.ui.textual_private import TerminalDriver, XTermParser

# --- writes to a terminal that may stall, without waiting for it, and records missed frames -------

_LAG_S = 1.0
"""Seconds that output may wait before frames are skipped; a frame takes 0.5 s on a slow line."""

_MOST = 1 << 20
"""Number of waiting bytes at which all further output is dropped, not only frames."""

_CHUNK = 1 << 12
"""Largest number of bytes in one write(2): those in a blocked call can't be discarded."""


class Writer:
    """Writes bytes to a terminal from its own thread, in order."""

    def __init__(
        self, terminal: int, *, caught_up: Callable[[], object], lost: Callable[[], object]
    ) -> None:
        """Start writing to the file descriptor ``terminal``.

        The thread calls ``caught_up`` once everything is written after skipped frames, and ``lost``
        once the terminal is gone.
        """
        self._terminal = terminal
        self._caught_up = caught_up
        self._lost = lost
        self._waiting: deque[tuple[float, bytes]] = deque()
        self._oldest = 0.0
        """Moment at which the oldest unwritten bytes were queued, in seconds."""
        self._unwritten = 0
        """Number of bytes that wait, including those the thread is writing."""
        self._missed = False
        """Whether a frame has been skipped since all output was last written."""
        self._gone = False
        self._discards = 0
        self._changed = threading.Condition()
        threading.Thread(target=self._run, name="terminal-writer", daemon=True).start()

    def put(self, data: bytes) -> None:
        """Queue ``data`` for writing; drop it if the terminal is gone or far behind."""
        with self._changed:
            if not self._gone and self._unwritten < _MOST:
                now = time.monotonic()
                self._oldest = self._oldest if self._unwritten else now
                self._waiting.append((now, data))
                self._unwritten += len(data)
                self._changed.notify_all()

    def takes_frame(self) -> bool:
        """Return whether a frame may be queued; if not, ``caught_up`` is called when it may."""
        with self._changed:
            late = self._unwritten > 0 and time.monotonic() - self._oldest > _LAG_S
            self._missed = self._missed or late
            return not self._missed

    def wait(self, limit_s: float) -> bool:
        """Wait until all output is written, within the limit; return whether it is."""
        with self._changed:
            return self._changed.wait_for(lambda: not self._unwritten, limit_s)

    def discard(self) -> None:
        """Discard all waiting bytes except those in a system call."""
        with self._changed:
            self._discards += 1
            self._waiting.clear()
            self._unwritten = 0

    def _run(self) -> None:
        while True:
            with self._changed:
                while not self._waiting:
                    if self._missed:
                        self._missed = False
                        self._caught_up()
                    self._changed.wait()
                self._oldest, data = self._waiting.popleft()
                discards = self._discards
            while data and discards == self._discards:
                written = self._write(data[:_CHUNK])
                with self._changed:
                    if written is None:
                        self._gone = True
                        self._waiting.clear()
                        self._unwritten = 0
                        self._lost()
                    elif discards == self._discards:
                        self._unwritten -= written
                    self._changed.notify_all()
                if written is None:
                    return
                data = data[written:]

    def _write(self, data: bytes) -> int | None:
        """Write some of ``data`` and return the number of bytes; None if the terminal is gone."""
        try:
            return os.write(self._terminal, data)
        except BlockingIOError:
            # Another program may have made the shared terminal non-blocking.
            select.select([], [self._terminal], [])
            return 0
        except OSError:
            return None


# --- the terminal of the screen, which may stall, close or go to the background -------------------

_ENDING = (signal.SIGHUP, signal.SIGINT, signal.SIGTERM)

_PATIENCE_S = 0.25
"""Seconds that a terminal may take to write waiting output before it counts as stalled."""

_INPUT_S = 0.1
"""Interval in seconds at which the input thread checks for its end and for a lone Escape."""

_FOREGROUND_S = 0.2
"""Interval in seconds of checks for ``fg`` after ``bg``, which no signal reports."""

_PARTING = "ccplay keeps running, with lab, timeline and recording; fg shows it again\r\n"

_ESCAPE = re.compile(r"\x1b(?=[^\x1b\[Obf\t\x7f])")
"""Escape before a key with which it forms no sequence; terminals send alt+x as escape and x too.

``[`` and ``O`` begin the sequences of other keys; with b, f, tab and DEL it edits in a field.
"""

_PASTE, _PASTE_ENDS = "\x1b[200~", "\x1b[201~"
"""Sequences around a paste, if the terminal brackets it."""

_PASTE_S = 1.0
"""Seconds without a byte after which a control key ends a paste whose own end has been lost."""

_CANCEL = b"\x18"
"""Byte that ends a truncated escape sequence: CAN of ECMA-48."""


class Pastes:
    """Ends a paste that was cut off, or it would swallow every key, even the one that quits."""

    def __init__(self) -> None:
        self._seen = ""
        self._last = 0.0

    def completed(self, text: str, now: float) -> str:
        """Return a read at ``now`` seconds, after the end of a paste if that has been lost."""
        begun, late = self._seen.startswith(_PASTE), now > self._last + _PASTE_S
        if begun and late and text[:1] < " " and text[:1] not in "\x1b\t\r\n":
            text = _PASTE_ENDS + text
        seen = self._seen + text
        begun = seen.rfind(_PASTE) > seen.rfind(_PASTE_ENDS)
        # The end may come in two reads.
        self._seen = (_PASTE if begun else "") + seen[1 - len(_PASTE_ENDS) :]
        self._last = now
        return text


class Terminal(TerminalDriver):
    """Reads keys from stdin and draws on stdout without blocking the event loop.

    Textual's own driver blocks forever on a stalled terminal, and keeps reading from a closed one.
    """

    def __init__(
        self,
        app: App[Any],
        *,
        debug: bool = False,
        mouse: bool = True,
        size: tuple[int, int] | None = None,
    ) -> None:
        super().__init__(app, debug=debug, mouse=mouse, size=size)
        self._drawn_on = sys.stdout.fileno()
        self._encoding = sys.stdout.encoding
        self._context = copy_context()
        self._writer = Writer(
            self._drawn_on,
            caught_up=lambda: self._soon(app.refresh),
            lost=lambda: self._soon(self._hang_up),
        )
        self._aside = False
        """Whether the shell has the terminal while ccplay runs in the background."""
        own = cast("OrderlyApp[Any]", app).appearance.keymap.own
        self._has_alt = any("alt+" in keys for keys in own.values())
        for number in _ENDING:
            self.event_loop.add_signal_handler(number, self._leave, number)
        self.event_loop.add_signal_handler(signal.SIGTSTP, self._step_aside)
        self.event_loop.add_signal_handler(signal.SIGCONT, self._come_back)

    def takes_frame(self) -> bool:
        """Return whether to draw now; after False the whole screen is drawn later."""
        return not self._aside and self._writer.takes_frame()

    def write(self, data: str) -> None:
        """Queue ``data`` for writing without waiting."""
        if not self._aside:
            self._writer.put(data.encode(self._encoding, "replace"))

    def disable_input(self) -> None:
        """Stop reading keys."""
        if not self._aside:
            super().disable_input()

    def stop_application_mode(self) -> None:
        """Restore the terminal's modes, even if it is stalled."""
        if self._aside:
            return
        if not self._writer.wait(_PATIENCE_S):
            self._make_room()
        super().stop_application_mode()

    def close(self) -> None:
        """Wait briefly until all output is written."""
        self._writer.wait(_PATIENCE_S)
        super().close()

    def run_input_thread(self) -> None:
        """Read keys and post them to the app until asked to stop or the terminal is gone."""
        parser = self.new_parser()
        decode = getincrementaldecoder("utf-8")("replace").decode
        pastes = Pastes()
        while not self.exit_event.is_set():
            if select.select([self.fileno], [], [], _INPUT_S)[0]:
                try:
                    data = os.read(self.fileno, _CHUNK)
                except BlockingIOError:
                    continue
                except OSError:
                    data = b""
                if not data:
                    self._soon(self._hang_up)
                    return
                text = pastes.completed(decode(data), time.monotonic())
                for message in self._typed(parser, text):
                    self.process_message(message)
            for message in parser.tick():
                self.process_message(message)

    def _typed(self, parser: XTermParser, text: str) -> Iterator[Message]:
        """Parse one read; escape and the key typed after it stay two keys."""
        *before, last = [text] if self._has_alt else _ESCAPE.split(text)
        for part in before:
            if part:
                yield from parser.feed(part)
            yield Key("escape", "\x1b")
        if last:
            yield from parser.feed(last)

    def _step_aside(self) -> None:
        """Return the terminal to the shell and continue in the background."""
        if self._aside:
            return
        if os.getpgrp() == os.getsid(0):
            self.running_app.notify("ccplay was not started by a shell, so it can't be suspended.")
            return
        self.stop_application_mode()
        self.write(_PARTING)
        self.close()
        self._aside = True
        # Stops the rest of the process group, up to the shell's child; this process continues.
        os.killpg(0, signal.SIGTSTP)

    def _come_back(self) -> None:
        """Take the terminal back once this process is in the foreground, if it ever is."""
        if not self._aside:
            return
        try:
            ours = os.tcgetpgrp(self.fileno) == os.getpgrp()
        except OSError:
            self._hang_up()
            return
        if not ours:
            self.event_loop.call_later(_FOREGROUND_S, self._come_back)
            return
        self._aside = False
        self.resume_application_mode()
        self.running_app.refresh()

    def _make_room(self) -> None:
        """Discard output that a stalled terminal has not read, to restore its modes."""
        self._writer.discard()
        with contextlib.suppress(termios.error):
            termios.tcflush(self._drawn_on, termios.TCOFLUSH)
            # Only stopping and starting the output wakes a blocked write.
            termios.tcflow(self._drawn_on, termios.TCOOFF)
            termios.tcflow(self._drawn_on, termios.TCOON)
        self._writer.put(_CANCEL)

    def _hang_up(self) -> None:
        """End as after SIGHUP, which the kernel does not send to every program of a terminal."""
        self._leave(signal.SIGHUP)

    def _leave(self, number: int) -> None:
        self.running_app.exit(return_code=128 + number)

    def _soon(self, call: Callable[[], object]) -> None:
        """Run a function in the event loop, called from a thread, unless the loop has ended."""
        with contextlib.suppress(RuntimeError):
            self.event_loop.call_soon_threadsafe(call, context=self._context)
