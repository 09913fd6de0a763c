"""``ccplay guest``: installs a full kernel for labs in a virtual machine."""

from __future__ import annotations

import argparse

from ccplay.visible import notify


def add(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this command."""
    parser.add_argument(
        "packages",
        nargs="*",
        metavar="PACKAGE",
        help="kernel to install instead of the newest one of the package sources: its .deb files, "
        "image and modules",
    )
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Run this command and return the exit code."""
    from ccplay.guest.fetch import fetch

    fetch(notify, arguments.packages)
    return 0
