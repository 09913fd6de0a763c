"""``ccplay doctor``: reports whether a lab can run here and what this kernel supports."""

from __future__ import annotations

import argparse
import sys

from ccplay.commands import options


def add(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this command."""
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    options.add_place(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Run this command and return the exit code."""
    import asyncio

    from rich.console import Console

    from ccplay import doctor
    from ccplay.errors import LabError
    from ccplay.stream import wire

    capabilities = asyncio.run(doctor.examine(options.lab_opener(arguments)(doctor.SMALLEST)))
    if arguments.json:
        sys.stdout.write(wire.encode_value(capabilities).decode() + "\n")
    else:
        console = Console()
        doctor.show(capabilities, console)
        if arguments.host is None:
            doctor.show_ways(doctor.ways(), console)
    return LabError.exit_code if doctor.obstacles(capabilities) else 0
