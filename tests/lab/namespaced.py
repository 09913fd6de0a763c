"""Runs a function of a test in private namespaces and brings its result back as JSON."""

import asyncio
import contextlib
import importlib
import json
import os
import sys
import threading
import time
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from ccplay.analysis.trust import HealthResult, judge
from ccplay.guest import boot
from ccplay.lab import warm
from ccplay.lab.health import Timekeeper
from ccplay.lab.server import make_run_private
from ccplay.model.events import Health
from ccplay.session import launch
from ccplay.session.launch import WarmLabs
from tests.events import folded
from tests.lab.trust import note

ROOT = Path(__file__).parents[2]

_MOST_S = 300.0
"""Longest time in seconds for a case."""

_BEAT_S = 0.02


def call(case: str, *arguments: object, rootless: bool = False, guest: bool = False) -> Any:
    """Return the result of coroutine ``case`` (``module:function``) inside new namespaces.

    ``rootless`` maps root in a user namespace, where it has no power over the machine; ``guest``
    runs under the guest's kernel. The case's timekeeping counts for tests of physics, see
    ``physical``.
    """
    return judged(case, *arguments, rootless=rootless, guest=guest)[0]


def judged(
    case: str, *arguments: object, rootless: bool = False, guest: bool = False
) -> tuple[Any, HealthResult | None]:
    """Return the result of ``call``, and how well the case kept time, if reported.

    A fixture that shares them between tests has each of these ``note`` the timekeeping.
    """
    if rootless and (refusal := launch.rootless_refusal()) is not None:
        pytest.skip(f"no user namespaces here: {refusal}")
    words = [case, json.dumps(arguments)]
    running = _in_guest(words) if guest else _forked(words, rootless)
    code, printed, complaints = asyncio.run(running)
    *_, health, result = printed.splitlines() or ["", ""]
    kept: HealthResult | None = None
    if health:
        state = folded(msgspec.json.decode(health, type=Health))
        note(kept := judge(state))
    # The exit code of a guest is QEMU's.
    assert code == 0, complaints
    found = json.loads(result or "null")
    assert not guest or found is not None, complaints
    return found, kept


async def _in_guest(words: Sequence[str]) -> tuple[int, str, str]:
    """Return the result of ``_forked`` for ``main`` in namespaces under the guest's kernel."""
    script = f"from {__name__} import main; main()"
    argv = [*launch.inner_argv()[: len(launch.UNSHARE)], sys.executable, "-c", script, *words]
    # A guest ends with its stdin, so that stays open.
    stdin, held = os.pipe()
    try:
        run = await asyncio.create_subprocess_exec(
            *boot.argv([*boot.environment(), f"PYTHONPATH={ROOT}", *argv], paced=True),
            cwd=ROOT,
            stdin=stdin,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        async with asyncio.timeout(2 * _MOST_S):
            printed, complaints = await run.communicate()
    finally:
        os.close(stdin)
        os.close(held)
    assert run.returncode is not None
    return run.returncode, printed.decode(), complaints.decode()


async def _forked(words: Sequence[str], rootless: bool) -> tuple[int, str, str]:
    """Return exit code, output and errors of ``main`` in a fork of a warm process."""
    with contextlib.chdir(ROOT):
        fork = await _warm.fork(rootless, words)
    async with asyncio.timeout(_MOST_S):
        printed, complaints = await asyncio.gather(fork.stdout.read(), fork.stderr.read())
        code = await fork.wait()
    fork.close()
    return code, printed.decode(), complaints.decode()


def serve() -> None:
    """Run ``main`` in a fork to its end."""
    code = 1
    try:
        main()
        code = 0
    except Exception:  # noqa: BLE001 - the test quotes it
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        os._exit(code)


def wait_warm() -> None:
    """Import what all cases need, and fork for each of them."""
    for path in Path(__file__).parent.glob("*_cases.py"):
        importlib.import_module(f"tests.lab.{path.stem}")
    warm.main(serve)


_START = (
    f"import sys; sys.path.insert(0, {str(ROOT)!r}); from {__name__} import wait_warm; wait_warm()"
)
_warm = WarmLabs((sys.executable, "-P", "-c", _START))


def main() -> None:
    make_run_private()
    module, _, function = sys.argv[1].partition(":")
    case = getattr(importlib.import_module(module), function)
    result: Any = None
    try:
        with timekeeper() as keeper:
            result = asyncio.run(case(*json.loads(sys.argv[2])))
    finally:
        health = keeper.report(time.monotonic(), None, 0)
        print(msgspec.json.encode(health).decode(), json.dumps(result), sep="\n")


@contextmanager
def timekeeper() -> Iterator[Timekeeper]:
    """Keep time in a thread as a lab does, because a case may block its own for longer."""
    keeper, over = Timekeeper(lambda: [os.getpid()]), threading.Event()
    keeper.begin(time.monotonic())

    def beat() -> None:
        due = time.monotonic()
        while not over.wait(due - time.monotonic()):
            keeper.sweep(time.monotonic() - due, 0.0)
            due += _BEAT_S
            if (behind := int((time.monotonic() - due) / _BEAT_S)) > 0:
                keeper.miss(behind)
                due += behind * _BEAT_S

    beating = threading.Thread(target=beat)
    beating.start()
    try:
        yield keeper
    finally:
        over.set()
        beating.join()
