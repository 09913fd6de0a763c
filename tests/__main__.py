"""``python -m tests``: run every test, side by side where that spoils nothing.

Labs wait for their packets more than they compute, so several run at a time, and the tests that
only compute have what they leave of the processors. A test that fails beside others is not judged
by that: it is tried again afterwards, alone, and held to the same bounds.
"""

from __future__ import annotations

import compileall
import os
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import IO

import ccplay
from tests import costs

LABS_PER_CPU = 2.5
"""Labs at a time and CPU: each needs about a quarter of one, and waits in between."""

SCREENS_PER_CPU = 2
"""Workers for all else: a key on a screen is waited for, and so are browsers and programs."""

_NO_BYTECODE = "PYTHONDONTWRITEBYTECODE"
"""Where this is set, what is compiled would not be kept; git ignores it."""

_IDLE = 19
"""The nice value of what is to run in the gaps only, see sched(7)."""


class Pass:
    """One run of pytest: its name, the line that it ended with, and what it cost."""

    def __init__(self, name: str, *arguments: str, nice: int = 0, quiet: bool = False) -> None:
        """Start it; ``quiet`` holds its output back until ``end``."""
        self.name = name
        self.last = ""
        self.cpu_s = 0.0
        """Seconds of the processors, with all that it started; known at its end."""
        self.wall_s = 0.0
        self._began = time.monotonic()
        self._held: list[str] | None = [] if quiet else None
        cache = f"cache_dir=.pytest_cache/{name.replace(' ', '-')}"
        argv = [sys.executable, "-m", "pytest", "-o", cache, *arguments]
        # The tests' own processes must not think that somebody waits for colours.
        self._process = subprocess.Popen(
            ["nice", "-n", str(nice), *argv],
            stdout=subprocess.PIPE,
            text=True,
            env={name: value for name, value in os.environ.items() if name != _NO_BYTECODE},
        )
        assert self._process.stdout is not None
        self._reader = threading.Thread(target=self._read, args=(self._process.stdout,))
        self._reader.start()

    def _read(self, output: IO[str]) -> None:
        for line in output:
            self.last = line.strip(" =\n") or self.last
            if self._held is None:
                print(line, end="", flush=True)
            else:
                self._held.append(line)
        _, status, used = os.wait4(self._process.pid, 0)
        self._process.returncode = os.waitstatus_to_exitcode(status)
        self.cpu_s = used.ru_utime + used.ru_stime
        self.wall_s = time.monotonic() - self._began

    def end(self) -> bool:
        """Wait for its end, print what was held back, and return whether all passed."""
        self._reader.join()
        print("".join(self._held or ()), end="", flush=True)
        return self._process.returncode == 0


def main() -> int:
    began = time.monotonic()
    cpus = len(os.sched_getaffinity(0))
    # Several hundred labs and commands are started: each would compile what it imports, and each
    # worker every test.
    for compiled in (Path(ccplay.__file__).parent, Path(__file__).parent):
        compileall.compile_dir(compiled, quiet=1, workers=cpus)
    with tempfile.TemporaryDirectory() as folder:
        again = Path(folder) / "again"
        failed = [Path(folder) / name for name in ("labs", "screens and units")]
        spent = [Path(folder) / name for name in ("labs.json", "screens.json", "again.json")]
        screens = ["-n", str(cpus * SCREENS_PER_CPU), "--dist", "worksteal"]
        labs = [*("-n", str(round(cpus * LABS_PER_CPU))), "--dist", "loadgroup"]
        passes = [
            Pass("labs", "tests/lab", *labs, *_results(failed[0], spent[0])),
            Pass(
                "screens and units",
                *("tests/unit", "tests/ui", *screens),
                *_results(failed[1], spent[1]),
                nice=_IDLE,
                quiet=True,
            ),
        ]
        passed = [each.end() for each in passes]
        again.write_text("".join(file.read_text() for file in failed if file.exists()))
        if names := again.read_text().splitlines():
            files = sorted({name.partition("::")[0] for name in names})
            chosen = ("--only", str(again), "--costs", str(spent[2]))
            passes.append(Pass("again alone", *files, *chosen))
            passed.append(passes[-1].end())
        print("\nthe costliest tests, with the fixtures that they were the first or last to use:")
        print(*costs.costliest(costs.read(spent)), sep="\n")
    width = max(len(each.name) for each in passes)
    for each, good in zip(passes, passed, strict=True):
        cost = f"{each.wall_s / 60:4.1f} minutes, {each.cpu_s:4.0f} s of CPU"
        print(f"{each.name:{width}}  {cost}  {'passed' if good else 'FAILED'}: {each.last}")
    took = f"{(time.monotonic() - began) / 60:.1f} minutes"
    print(f"all tests passed in {took}" if all(passed) else f"tests FAILED, after {took}")
    return 0 if all(passed) else 1


def _results(failed: Path, spent: Path) -> list[str]:
    # What an assertion compared is printed where a failed test is tried again, alone: to prepare
    # that in every worker would take each 5 s.
    return ["--again", str(failed), "--costs", str(spent), "--assert", "plain"]


if __name__ == "__main__":
    sys.exit(main())
