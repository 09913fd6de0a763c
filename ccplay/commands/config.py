"""``ccplay config``: prints the preferences in force, in their file's format, and its path."""

from __future__ import annotations

import argparse

from ccplay.visible import notify, printable


def add(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this command."""
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Run this command and return the exit code: 1 if the file has mistakes."""
    del arguments
    from ccplay.ui import preferences
    from ccplay.ui.themes import load_looks

    mine = preferences.load(load_looks())
    where = preferences.path()
    there = "" if where.exists() else " (not there yet: these are the defaults)"
    print(f"# {printable(str(where))}{there}")
    print(preferences.written(mine), end="")
    notify(*(f"ccplay: {each}" for each in mine.mistakes))
    return 1 if mine.mistakes else 0
