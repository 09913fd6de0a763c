"""``ccplay guest``: bring a full kernel, for labs in a virtual machine."""

from __future__ import annotations

import argparse
import sys


def add(parser: argparse.ArgumentParser) -> None:
    """Add the words of this command."""
    parser.set_defaults(run=run)


def run(_: argparse.Namespace) -> int:
    """Run this command and return the exit code."""
    from ccplay.guest.fetch import fetch

    fetch(lambda step: print(step, file=sys.stderr, flush=True))
    return 0
