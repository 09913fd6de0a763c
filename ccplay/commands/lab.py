"""``ccplay lab``: be the privileged side of the pipe."""

from __future__ import annotations

import argparse
import os

from ccplay.errors import CcplayError


def add(parser: argparse.ArgumentParser) -> None:
    """Add the words of this command."""
    parser.set_defaults(run=run)


def run(_: argparse.Namespace) -> int:
    """Run this command and return the exit code."""
    from ccplay import launch

    argv = launch.inner_argv()
    try:
        os.execvp(argv[0], argv)  # noqa: S606 - no shell is the point
    except OSError as error:
        raise CcplayError(f"{argv[0]}: {error.strerror} (apt install util-linux)") from None
