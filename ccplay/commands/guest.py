"""``ccplay guest``: install a full kernel for labs in a virtual machine."""

from __future__ import annotations

import argparse

from ccplay.visible import tell


def add(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this command."""
    parser.set_defaults(run=run)


def run(_: argparse.Namespace) -> int:
    """Run this command and return the exit code."""
    from ccplay.guest.fetch import fetch

    fetch(tell)
    return 0
