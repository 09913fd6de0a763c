"""Measures the CPU seconds of tests: of a test's process and of all processes that it started.

The first test that uses a fixture of a module or a group bears the fixture's cost.
"""

import contextlib
import os
import resource
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import msgspec

_NAME = 120
"""Greatest number of characters of a test's name to print; parameters may be long."""


@dataclass
class Cost:
    """The cost of one test, from the setup of its first fixture to the teardown of its last."""

    cpu_s: float = 0.0
    """CPU seconds, user and system; those of child processes are added once they have ended."""
    wall_s: float = 0.0
    """Elapsed seconds of the test, its setup and its teardown."""


class Costs:
    """The costs of tests by name; workers send theirs with the tests' reports."""

    def __init__(self) -> None:
        self.tests: defaultdict[str, Cost] = defaultdict(Cost)
        self._spent_s = 0.0

    def lap(self) -> float:
        """Return the CPU seconds of this process and its children since the last call.

        For running children, such as the warm process of labs, their ended children count, too.
        """
        both = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
        spent_s = sum(each.ru_utime + each.ru_stime for each in both) + sum(map(_spent, _running()))
        before, self._spent_s = self._spent_s, spent_s
        return max(0.0, spent_s - before)

    def add(self, name: str, cpu_s: float, wall_s: float) -> None:
        """Add the cost of one phase of a test: setup, call or teardown."""
        cost = self.tests[name]
        cost.cpu_s += cpu_s
        cost.wall_s += wall_s

    def write(self, file: Path) -> None:
        """Write all costs as JSON."""
        file.write_bytes(msgspec.json.encode(self.tests))


def _running() -> list[str]:
    """Return the process IDs of this process's children; see proc_pid_task_children(5)."""
    with contextlib.suppress(OSError):
        return Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
    return []


def _spent(process: str) -> float:
    """Return the CPU seconds of a process and of the children that it has waited for."""
    with contextlib.suppress(OSError):
        after_name = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
        return sum(map(int, after_name[11:15])) / os.sysconf("SC_CLK_TCK")
    return 0.0


def read(files: Iterable[Path]) -> dict[str, Cost]:
    """Return the sums of the costs in files of ``Costs.write``; missing files add nothing."""
    every = Costs()
    for file in files:
        if file.exists():
            found = msgspec.json.decode(file.read_bytes(), type=dict[str, Cost])
            for name, cost in found.items():
                every.add(name, cost.cpu_s, cost.wall_s)
    return every.tests


def costliest(tests: dict[str, Cost], count: int = 10) -> list[str]:
    """Return a line for each of the ``count`` tests with the most CPU seconds."""
    ranked = sorted(tests.items(), key=lambda item: item[1].cpu_s, reverse=True)[:count]
    return [
        f"{cost.cpu_s:7.1f} s of CPU  {cost.wall_s:6.1f} s  {name[:_NAME]}" for name, cost in ranked
    ]
