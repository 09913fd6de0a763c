"""``ccplay lab``: be the privileged side of the pipe."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from ccplay.errors import CcplayError, LabError


def add(parser: argparse.ArgumentParser) -> None:
    """Add the words of this command."""
    parser.add_argument("--captures", type=Path, metavar="DIR", help="where packet captures go")
    parser.add_argument(
        "--machine", default="", metavar="NAME", help="put in front of the paths that it tells"
    )
    parser.add_argument(
        "--algorithm", action="append", default=[], type=Path, metavar="FILE", help="see play"
    )
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Run this command and return the exit code."""
    from ccplay.session import launch

    if (refusal := launch.refusal()) is not None:
        raise LabError(f"no lab can start here, it needs namespaces of its own: {refusal}")
    argv = launch.inner_argv(arguments.captures, arguments.machine, arguments.algorithm)
    try:
        os.execvp(argv[0], argv)  # noqa: S606 - no shell is the point
    except OSError as error:
        raise CcplayError(f"{argv[0]}: {error.strerror} (apt install util-linux)") from None
