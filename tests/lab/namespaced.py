"""Runs a function of a test in private namespaces and brings its result back as JSON."""

from __future__ import annotations

import asyncio
import importlib
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ccplay import launch
from ccplay.lab.server import make_run_private

ROOT = Path(__file__).parents[2]


def call(case: str, *arguments: object, rootless: bool = False) -> Any:
    """Return what coroutine ``case`` (``module:function``) returns inside new namespaces.

    ``rootless`` maps root in a user namespace, where it has no power over the machine.
    """
    if rootless and (refusal := launch.rootless_refusal()) is not None:
        pytest.skip(f"no user namespaces here: {refusal}")
    user = launch.ROOTLESS if rootless else ()
    argv = [*launch.inner_argv()[: len(launch.UNSHARE)], *user, sys.executable, "-m", __name__]
    if sys.flags.safe_path:
        raise AssertionError("tests are imported from the current directory")
    done = subprocess.run(
        [*argv, case, json.dumps(arguments)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def main() -> None:
    make_run_private()
    module, _, function = sys.argv[1].partition(":")
    case = getattr(importlib.import_module(module), function)
    print(json.dumps(asyncio.run(case(*json.loads(sys.argv[2])))))


if __name__ == "__main__":
    main()
