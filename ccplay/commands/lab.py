"""``ccplay lab``: the privileged side of the pipe."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from ccplay.errors import CcplayError, LabError


def add(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this command."""
    parser.add_argument(
        "--captures", type=Path, metavar="DIR", help="directory for packet captures"
    )
    parser.add_argument(
        "--machine", default="", metavar="NAME", help="prefix for the paths that it reports"
    )
    parser.add_argument(
        "--algorithm", action="append", default=[], type=Path, metavar="FILE", help="see play"
    )
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Run this command and return the exit code."""
    from ccplay.session import launch

    if (refusal := launch.refusal()) is not None:
        raise LabError(f"a lab can't start here, because it needs its own namespaces: {refusal}")
    argv = launch.inner_argv(arguments.captures, arguments.machine, arguments.algorithm)
    try:
        os.execvp(argv[0], argv)  # noqa: S606 - no shell is the point
    except OSError as error:
        raise CcplayError(f"{argv[0]}: {error.strerror} (apt install util-linux)") from None
