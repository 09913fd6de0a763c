"""Runs a function of a test in private namespaces and brings its result back as JSON."""

from __future__ import annotations

import asyncio
import importlib
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from ccplay.analysis.trust import judge
from ccplay.guest import boot
from ccplay.lab.health import Timekeeper
from ccplay.lab.server import make_run_private
from ccplay.model.events import Health
from ccplay.session import launch
from ccplay.state.lab_state import LabState
from tests.lab.trust import note

ROOT = Path(__file__).parents[2]

_BEAT_S = 0.02


def call(case: str, *arguments: object, rootless: bool = False, guest: bool = False) -> Any:
    """Return what coroutine ``case`` (``module:function``) returns inside new namespaces.

    ``rootless`` maps root in a user namespace, where it has no power over the machine; ``guest``
    runs under the guest's kernel. How well the case kept time counts for tests of physics, see
    ``physical``.
    """
    if rootless and (refusal := launch.rootless_refusal()) is not None:
        pytest.skip(f"no user namespaces here: {refusal}")
    user = launch.ROOTLESS if rootless else ()
    argv = [*launch.inner_argv()[: len(launch.UNSHARE)], *user, sys.executable, "-m", __name__]
    if sys.flags.safe_path:
        raise AssertionError("tests are imported from the current directory")
    argv += [case, json.dumps(arguments)]
    if guest:
        argv = boot.argv([*boot.environment(), f"PYTHONPATH={ROOT}", *argv], paced=True)
    # A guest ends with its stdin, so that stays open.
    stdin, held = os.pipe()
    try:
        done = subprocess.run(
            argv,
            cwd=ROOT,
            stdin=stdin,
            capture_output=True,
            text=True,
            timeout=600 if guest else 300,
            check=False,
        )
    finally:
        os.close(stdin)
        os.close(held)
    *_, health, result = done.stdout.splitlines() or ["", ""]
    if health:
        state = LabState()
        state.apply(msgspec.json.decode(health, type=Health))
        note(judge(state))
    # The exit code of a guest is QEMU's.
    assert done.returncode == 0, done.stderr
    found = json.loads(result or "null")
    assert not guest or found is not None, done.stderr
    return found


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
    """Keep time as a lab does, in a thread: a case may do something else for longer."""
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


if __name__ == "__main__":
    main()
