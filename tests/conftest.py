"""Settings for all tests, and the options with which ``python -m tests`` runs failed ones again."""

import atexit
import gc
import os
import re
import shutil
import signal
import tempfile
import zlib
from collections.abc import Generator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.costs import Costs
from tests.lab import trust

# The same examples on every machine, however slow it is.
settings.register_profile(
    "anywhere", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("anywhere")

# The objects of modules and thousands of tests stay to the end: searching them for garbage again
# and again took a quarter of the time. pytest collects what remains at the end.
gc.set_threshold(50_000, 20, 20)

# A shell starts jobs in the background with SIGINT ignored, and every program here inherits that.
signal.signal(signal.SIGINT, signal.default_int_handler)
# readline leaves them to xdist's workers; programs would take them for the size of their terminal.
for _name in ("COLUMNS", "LINES"):
    os.environ.pop(_name, None)
_own = tempfile.mkdtemp(prefix="ccplay-tests-")
# Not a TemporaryDirectory, which warns in workers that are ended before they have cleaned up.
atexit.register(shutil.rmtree, _own, ignore_errors=True)

_again: set[str] = set()
"""Names of the tests that failed while others ran in parallel."""

_GROUP = re.compile(r"@[^@\]]+$")
"""Pattern of the suffix that xdist adds to grouped tests' names; parameters end in a bracket."""

_costs = Costs()


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("ccplay")
    group.addoption(
        "--again",
        type=Path,
        metavar="FILE",
        help="tests run side by side: write those that fail to FILE, one a line",
    )
    group.addoption(
        "--costs", type=Path, metavar="FILE", help="write what each test cost to FILE, as JSON"
    )
    group.addoption(
        "--only", type=Path, metavar="FILE", help="run exactly the tests that FILE names"
    )


def pytest_configure(config: pytest.Config) -> None:
    trust.side_by_side = config.getoption("again") is not None


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Put groups first; with ``--only``, keep the tests named in its file.

    A file is used because hundreds of names could be too long for argv.
    """
    # A group runs in one worker from its first test to its last; if it began late, all would wait.
    items.sort(key=lambda item: item.get_closest_marker("xdist_group") is None)
    if (file := config.getoption("only")) is not None:
        wanted = set(file.read_text().splitlines())
        if missing := wanted - {item.nodeid for item in items}:
            raise pytest.UsageError(f"no such tests: {', '.join(sorted(missing))}")
        config.hook.pytest_deselected(items=[i for i in items if i.nodeid not in wanted])
        items[:] = [item for item in items if item.nodeid in wanted]


def pytest_runtest_logstart(nodeid: str) -> None:
    _costs.lap()
    # No test has the user's sessions and preferences, or those that another test has left.
    folder = f"{_own}/{zlib.crc32(nodeid.encode())}"
    os.environ |= {f"XDG_{name}_HOME": f"{folder}/{name.lower()}" for name in ("STATE", "CONFIG")}


def pytest_collection_finish() -> None:
    gc.collect()
    gc.freeze()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Report a failure in parallel with others as skipped, so that the test runs again alone."""
    report = yield
    # xdist sends every attribute of a report to the process that prints it.
    report.__dict__["cpu_s"] = _costs.lap()
    if trust.side_by_side and report.failed and call.excinfo is not None:
        report.outcome = "skipped"
        lines = [each.lineno + 1 for each in call.excinfo.traceback if each.path == item.path]
        why = f": {item.name}, lines {lines}, {call.excinfo.exconly().splitlines()[0]:.100}"
        report.longrepr = (str(item.path), 0, trust.AGAIN_ALONE + why)
    return report


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    name = _GROUP.sub("", report.nodeid)
    _costs.add(name, getattr(report, "cpu_s", 0.0), report.duration)
    if report.skipped and isinstance(report.longrepr, tuple):
        _, _, reason = report.longrepr
        if trust.AGAIN_ALONE in reason:
            _again.add(name)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Write failed tests and costs; not in a worker, which knows only its own tests."""
    if hasattr(session.config, "workerinput"):
        return
    if (file := session.config.getoption("again")) is not None:
        file.write_text("".join(f"{name}\n" for name in sorted(_again)))
    if (file := session.config.getoption("costs")) is not None:
        _costs.write(file)
