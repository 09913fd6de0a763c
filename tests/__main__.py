"""``python -m tests``: runs every test, in parallel where that does not distort results.

Labs wait for packets more than they compute, so several run at a time: few while physics is
judged, then more; guests follow, one per processor. Tests that only compute use the time that labs
and guests leave. A test that fails in parallel with others is not judged: it runs again afterwards,
alone, with the same bounds.
"""

import compileall
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Self

import ccplay
from tests import costs

PHYSICS_PER_CPU = 1.5
"""Labs at a time per CPU for tests of physics, whose packets must not wait for other labs."""

LABS_PER_CPU = 2.5
"""Labs at a time per CPU; each needs about a quarter of a CPU, and waits in between."""

GUESTS_PER_CPU = 1
"""Guests at a time per CPU; each emulated processor takes a whole CPU."""

SCREENS_PER_CPU = 2
"""Workers per CPU for all other tests, which wait for keys, browsers and programs."""

_NO_BYTECODE = "PYTHONDONTWRITEBYTECODE"
"""Environment variable that keeps Python from storing compiled files; removed for the tests."""

IN_GAPS = ("nice", "-n", "19", "chrt", "--idle", "0")
"""Prefix of a command that runs only while CPUs are idle: any lab interrupts it, see sched(7), and
by its nice value counts the time that it takes as free."""


class Pass:
    """One run of pytest: the files with its results, its last line, and its cost."""

    def __init__(
        self, folder: Path, name: str, *arguments: str, prefix: Sequence[str] = ()
    ) -> None:
        """Start pytest; with a ``prefix``, hold its output back until ``ended``."""
        self.name = name
        self.last = ""
        self.costs = folder / f"{name}.json"
        self.failed = folder / f"{name}.failed"
        """File with the tests to run again, one per line; missing if the pass wrote none."""
        self.cpu_s = 0.0
        """CPU seconds of the pass with all the processes that it started; known at its end."""
        self.wall_s = 0.0
        self._began = time.monotonic()
        self._held: list[str] | None = [] if prefix else None
        own = ("-o", f"cache_dir=.pytest_cache/{name}", "--costs", str(self.costs))
        # Its output is a pipe, so that the tests' processes do not write colours.
        self._process = subprocess.Popen(
            [*prefix, sys.executable, "-m", "pytest", *own, *arguments],
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

    def ended(self) -> Self:
        """Wait for the pass to end, print the output held back, and return this pass."""
        self._reader.join()
        print("".join(self._held or ()), end="", flush=True)
        return self

    @property
    def passed(self) -> bool:
        """Whether all tests passed; known once the pass has ended."""
        return self._process.returncode == 0


def run_side_by_side(folder: Path, cpus: int) -> list[Pass]:
    """Run all tests once: labs, then guests, and the rest on the CPU time that these leave.

    Together with labs, emulated processors would take twice as long, and late guests fail.
    """

    def start(
        name: str, *chosen: str, workers: float, dist: str = "loadgroup", prefix: Sequence[str] = ()
    ) -> Pass:
        spread = ("-n", str(round(workers * cpus)), "--dist", dist)
        again = ("--again", str(folder / f"{name}.failed"))
        # What an assertion compared is printed when a failed test runs again, alone: rewriting all
        # assertions to print it here would take each worker 5 s.
        plain = ("--assert", "plain")
        return Pass(folder, name, *chosen, *spread, *again, *plain, prefix=prefix)

    rest = start(
        "screens-and-units",
        *("tests/unit", "tests/ui"),
        workers=SCREENS_PER_CPU,
        dist="worksteal",
        prefix=IN_GAPS,
    )
    labs = [
        start(name, "tests/lab", "-m", marks, workers=workers).ended()
        for name, marks, workers in (
            ("physics", "physical and not guest", PHYSICS_PER_CPU),
            ("labs", "not physical and not guest", LABS_PER_CPU),
            ("guests", "guest", GUESTS_PER_CPU),
        )
    ]
    return [*labs, rest.ended()]


def main() -> int:
    began = time.monotonic()
    cpus = len(os.sched_getaffinity(0))
    # Otherwise each of several hundred labs and commands would compile what it imports, and each
    # worker every test.
    for compiled in (Path(ccplay.__file__).parent, Path(__file__).parent):
        compileall.compile_dir(compiled, quiet=1, workers=cpus)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        passes = run_side_by_side(folder, cpus)
        again = folder / "again"
        again.write_text("".join(p.failed.read_text() for p in passes if p.failed.exists()))
        if names := again.read_text().splitlines():
            files = sorted({name.partition("::")[0] for name in names})
            passes.append(Pass(folder, "again-alone", *files, "--only", str(again)).ended())
        print("\nthe costliest tests, including the fixtures that they set up or tore down:")
        print(*costs.costliest(costs.read(each.costs for each in passes)), sep="\n")
    width = max(len(each.name) for each in passes)
    for each in passes:
        cost = f"{each.wall_s / 60:4.1f} minutes, {each.cpu_s:4.0f} s of CPU"
        print(f"{each.name:{width}}  {cost}  {'passed' if each.passed else 'FAILED'}: {each.last}")
    passed = all(each.passed for each in passes)
    took = f"{(time.monotonic() - began) / 60:.1f} minutes"
    print(f"all tests passed in {took}" if passed else f"tests FAILED, after {took}")
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
