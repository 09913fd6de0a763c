"""Networks named on the command line: a topology with its parameters, or one of a Mininet file."""

from __future__ import annotations

import argparse
import json
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

from ccplay.errors import CcplayError, CommandError, LabError, ScenarioError, UsageError
from ccplay.visible import printable_json

if TYPE_CHECKING:
    from typing import Any

_PATIENCE_S = 30.0
"""Seconds that running a Mininet file may take."""


def add(parser: argparse.ArgumentParser) -> None:
    """Add the options that choose a network."""
    chosen = parser.add_mutually_exclusive_group()
    chosen.add_argument(
        "--topology",
        type=_topology,
        metavar="KIND[,NAME=N]",
        help="the network in place of the scenario's, such as fat-tree or leaf-spine,spines=4",
    )
    chosen.add_argument(
        "--topo",
        metavar="NAME[,ARGS]",
        help="the network in place of the scenario's: one of topos of --custom, or Mininet's own "
        "minimal, single, linear, tree, torus",
    )
    parser.add_argument(
        "--custom",
        type=Path,
        metavar="FILE",
        help="a Mininet file with topos = {...}, on the lab's machine; it is code, and runs with "
        "the lab's rights",
    )


def chosen(arguments: argparse.Namespace) -> str | None:
    """Return the network that the command line names as TOML, the value of ``topology``.

    Returns None if it names none. Raises ``CcplayError``.
    """
    if arguments.custom is not None and arguments.topo is None:
        raise UsageError("--custom needs --topo NAME[,ARGS]: which of the file's topos")
    if arguments.topo is None:
        topology: str | None = arguments.topology
        return topology
    from ccplay.scenario.writing import toml

    return toml(_mininet(arguments.host, arguments.custom, arguments.topo))


def _topology(text: str) -> str:
    """Return a topology such as ``leaf-spine,spines=4`` or ``leaf-spine,4,4`` as inline TOML.

    Raises ``ArgumentTypeError``.
    """
    from ccplay.model.quoting import did_you_mean, quote
    from ccplay.model.topologies import generated, plan, topology_of

    name, *words = text.split(",")
    kinds = {kind.name: kind for kind in generated()}
    if name not in kinds:
        raise argparse.ArgumentTypeError(f"no topology {quote(name)}{did_you_mean(name, kinds)}")
    known = {each.name: each for each in kinds[name].parameters}
    unnamed = iter(known)
    parameters: dict[str, Any] = {}
    for word in words:
        key, equals, value = word.rpartition("=")
        key = key if equals else next(unnamed, "")
        if key not in known:
            what = f"takes no {quote(key)}" if equals else f"takes no more than {len(known)}"
            names = did_you_mean(key, known)
            raise argparse.ArgumentTypeError(f"{name} {what}{names}")
        try:
            parameters[key] = known[key].parse(value)
        except ValueError as error:
            raise argparse.ArgumentTypeError(f"{name}: {key}: {error}") from None
    try:
        plan(topology_of(name, parameters))
    except CommandError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    pairs = [
        f"kind = {json.dumps(name)}",
        *(f"{key} = {number}" for key, number in parameters.items()),
    ]
    return f"{{ {', '.join(pairs)} }}"


def _mininet(host: str | None, file: Path | None, topo: str) -> dict[str, Any]:
    """Run a Mininet file in its own namespaces and return its network. Raises ``CcplayError``."""
    from ccplay.scenario.bounded import LARGEST_FILE
    from ccplay.session import launch

    argv = launch.topology_argv(host, file, topo)
    launch.ask_for_privilege(argv)
    what = str(file) if file else f"topo {topo}"
    try:
        done = subprocess.run(
            argv,
            check=False,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            timeout=_PATIENCE_S,
        )
    except subprocess.TimeoutExpired:
        raise UsageError(f"{what} did not end within {_PATIENCE_S:g} s") from None
    except OSError as error:
        raise LabError(f"{argv[0]}: {error.strerror}") from None
    try:
        answer = json.loads(printable_json(done.stdout[: LARGEST_FILE + 1]))
    except ValueError:
        raise CcplayError(f"{what} ended without a network (exit code {done.returncode})") from None
    if not isinstance(answer, dict):
        raise CcplayError(f"{what}: the answer is not a network")
    if "error" in answer:
        raise ScenarioError(str(answer["error"]))
    return answer
