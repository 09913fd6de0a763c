"""Acts on a program while it runs: keys, resizes, stalls, kills, Ctrl-Z."""

import contextlib
import random
import time
from collections import Counter
from collections.abc import Callable

import psutil

from tests.lab.test_leaks import marked, victims
from tests.soak import keys
from tests.soak.tally import Memory
from tests.soak.terminal import Terminal

_SMALLEST, _LARGEST = (20, 5), (250, 70)
_SAMPLE_S = 1.0

_TRAFFIC = ("iperf3", "ping", "wget")

_SOON_S = 20.0
"""Seconds that Ctrl-Z and ``fg`` may take; earlier keys or the machine may keep a program busy."""


class Hands:
    """A user at the terminal whose actions are random, from ``chance``."""

    def __init__(self, terminal: Terminal, chance: random.Random, counts: Counter[str]) -> None:
        self._terminal = terminal
        self._chance = chance
        self._counts = counts
        self.memory = Memory()
        self.fault: str | None = None
        """Description of what the program failed to do; None if nothing."""
        self.leaving_allowed = False
        """Whether one of the keys may have ended the program, by ``Quit`` in the palette."""

    def play(self, seconds: float) -> None:
        """Do one random thing after another for ``seconds``, or until the program ends."""
        begun = sampled = time.monotonic()
        while (now := time.monotonic()) < begun + seconds and self._terminal.code() is None:
            if now > sampled + _SAMPLE_S:
                self.memory.look(self._terminal, now - begun)
                sampled = now
            self._do_something()
        self.memory.look(self._terminal, time.monotonic() - begun)

    def type_ahead(self) -> None:
        """Press keys before there is a screen that reads them."""
        for _ in range(self._chance.randint(1, 10)):
            self._hammer()

    def _do_something(self) -> None:
        chance = self._chance
        if self._terminal.suspended:
            # A busy machine reads Ctrl-Z late.
            self._resume()
        deeds = (self._press, self._hammer, self._resize, self._stall, self._kill, self._suspend)
        chance.choices(deeds, (60, 10, 6, 1, 2, 1))[0]()
        self._terminal.code(chance.choice((0.0, 0.01, 0.1, 0.5)))

    def _press(self) -> None:
        pressed = keys.some(self._chance)
        self.leaving_allowed = self.leaving_allowed or pressed.startswith(keys.PALETTE)
        self._terminal.press(pressed)
        self._counts["keys"] += len(pressed)

    def _hammer(self) -> None:
        """Press one key many times, at least as fast as a held key repeats."""
        pressed = self._chance.choice(keys.BOUND) * self._chance.randint(5, 60)
        self._terminal.press(pressed)
        self._counts["keys"] += len(pressed)

    def _resize(self) -> None:
        for _ in range(self._chance.choice((1, 1, 1, 20))):
            self._terminal.resize(
                self._chance.randint(_SMALLEST[0], _LARGEST[0]),
                self._chance.randint(_SMALLEST[1], _LARGEST[1]),
            )
            self._counts["resizes"] += 1

    def _stall(self) -> None:
        self._terminal.stall()
        self._counts["stalls"] += 1
        self._terminal.code(self._chance.uniform(0.5, 6.0))
        self._terminal.read_on()

    def _suspend(self) -> None:
        """Press Ctrl-Z, and ``fg`` some time later."""
        self._terminal.suspend()
        if self._terminal.kind != "shell" or not self._soon(lambda: self._terminal.suspended):
            return
        self._counts["suspended"] += 1
        time.sleep(self._chance.uniform(0.1, 2.0))
        self._resume()

    def _resume(self) -> None:
        """Type ``fg``."""
        self._terminal.resume()
        # Until the program reads keys again, Ctrl-C is a signal that ends it.
        if not self._soon(lambda: self._terminal.takes_keys) and self._terminal.code() is None:
            self.fault = f"does not show itself again {_SOON_S:.0f} s after fg"

    def _soon(self, condition: Callable[[], bool]) -> bool:
        deadline = time.monotonic() + _SOON_S
        while not condition():
            if time.monotonic() > deadline or self._terminal.code() is not None:
                return False
            time.sleep(0.02)
        return True

    def _kill(self) -> None:
        """Kill a process that the lab survives, once there is traffic."""
        if not any(self._running(name) for name in _TRAFFIC):
            return
        part = self._chance.choice(("delay line", *_TRAFFIC))
        found = victims(self._terminal.marker, part) or self._running(part)
        if found:
            with contextlib.suppress(psutil.Error):
                self._chance.choice(found).kill()
                self._counts[f"killed: {part}"] += 1

    def _running(self, name: str) -> list[psutil.Process]:
        found = []
        for each in marked(self._terminal.marker):
            with contextlib.suppress(psutil.Error):
                if each.name() == name:
                    found.append(each)
        return found
