"""``ccplay schema``: prints the JSON Schema of scenario files, for editors."""

from __future__ import annotations

import argparse
import sys


def add(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this command."""
    parser.set_defaults(run=run)


def run(_arguments: argparse.Namespace) -> int:
    """Run this command and return the exit code."""
    from ccplay.scenario import schema

    sys.stdout.write(schema.text())
    return 0
