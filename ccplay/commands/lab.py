"""``ccplay lab``: runs a lab, the privileged side of the pipe."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from ccplay.errors import CcplayError, LabError, UsageError


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
    parser.add_argument(
        "--discipline", action="append", default=[], type=Path, metavar="FILE", help="see play"
    )
    parser.add_argument("--custom", type=Path, metavar="FILE", help="see play; needs --topo")
    parser.add_argument(
        "--topo",
        metavar="NAME[,ARGS]",
        help="print the network of a Mininet file as JSON, and build none",
    )
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Run this command and return the exit code."""
    from ccplay.session import launch

    if (refusal := launch.refusal()) is not None:
        raise LabError(f"a lab can't start here, because it needs its own namespaces: {refusal}")
    if arguments.topo is None and arguments.custom is not None:
        raise UsageError("--custom needs --topo NAME[,ARGS]: which of the file's topos")
    custom = [*arguments.algorithm, *arguments.discipline]
    argv = launch.inner_argv(arguments.captures, arguments.machine, custom)
    if arguments.topo is not None:
        argv = launch.inner_topology_argv(arguments.custom, arguments.topo)
    try:
        os.execvp(argv[0], argv)  # noqa: S606 - no shell is the point
    except OSError as error:
        raise CcplayError(f"{argv[0]}: {error.strerror} (apt install util-linux)") from None
