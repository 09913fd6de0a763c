"""``ccplay run``: a scenario without a screen."""

from __future__ import annotations

import argparse

from ccplay.commands import options


def add(parser: argparse.ArgumentParser) -> None:
    """Add the words of this command."""
    options.add_scenario(parser)
    options.add_lab(parser)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Run this command and return the exit code."""
    import asyncio

    from ccplay import headless, scenario

    loaded = scenario.load(scenario.find(arguments.scenario))
    return asyncio.run(
        headless.run(
            loaded.only(arguments.case),
            options.lab_opener(arguments),
            record=arguments.record,
            as_json=arguments.json,
        )
    )
