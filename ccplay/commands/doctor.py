"""``ccplay doctor``: reports whether a lab can run here and what this kernel supports."""

from __future__ import annotations

import argparse
import sys

from ccplay.commands import options


def add(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this command."""
    form = parser.add_mutually_exclusive_group()
    form.add_argument(
        "--all", action="store_true", help="describe each feature, and why missing ones do not work"
    )
    form.add_argument("--json", action="store_true", help="print one JSON object")
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
        show = doctor.show_all if arguments.all else doctor.show
        elsewhere = arguments.host is not None or arguments.guest
        show(capabilities, [] if elsewhere else doctor.ways(), Console())
    return LabError.exit_code if doctor.obstacles(capabilities) else 0
