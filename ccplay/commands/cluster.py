"""``ccplay cluster``: the certificate of a cluster, and a worker; and what ``run`` needs of one."""

from __future__ import annotations

import argparse
import contextlib
import os
from pathlib import Path
from typing import TYPE_CHECKING

from ccplay.commands import custom, options
from ccplay.errors import LabError, UsageError
from ccplay.visible import put, tell

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from ccplay.experiment.bench import Benches
    from ccplay.experiment.headless import Elsewhere, Joining
    from ccplay.model.commands import Build
    from ccplay.scenario.values import Scenario
    from ccplay.stream.sources import Source

_ABOUT = """\
  ccplay cluster certificate [DIR]   make the key and the certificate that all machines of a
                                     cluster have; copy DIR to each of them
  ccplay cluster worker ADDRESS      take runs from the scheduler at ADDRESS, until Ctrl-C

`dask worker` serves as well. A worker of this command connects again by itself when the scheduler
was restarted or the network was away, and goes on with its runs meanwhile.

  dask scheduler --protocol tls --tls-ca-file cluster.pem --tls-cert cluster.pem \\
                 --tls-key cluster.key
  ccplay cluster worker tls://HOST:8786
  ccplay run race --cluster tls://HOST:8786 --out race
"""


def add(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this command."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = _ABOUT
    parser.add_argument("action", choices=("certificate", "worker"), help="see below")
    parser.add_argument(
        "where", nargs="?", metavar="DIR|ADDRESS", help="see below (DIR: default in ~/.config)"
    )
    parser.add_argument(
        "--certificate",
        type=Path,
        metavar="DIR",
        help="worker: directory of the cluster's certificate, if not the default one",
    )
    parser.add_argument(
        "--jobs",
        type=options.count,
        metavar="N",
        help="worker: run up to N labs in parallel (default: the number of cores)",
    )
    parser.add_argument("--stdin", action="store_true", help=argparse.SUPPRESS)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Run this command and return the exit code."""
    check_libraries()
    if arguments.action == "certificate":
        from ccplay.cluster import certificate

        for path in certificate.make(Path(arguments.where or certificate.standard())):
            put(path)
        return 0
    return _serve(arguments)


def check_libraries() -> None:
    """Raise ``UsageError`` if Dask is not installed."""
    try:
        import distributed  # noqa: F401 - to see whether it can be
    except ModuleNotFoundError as error:
        raise UsageError(f"a cluster needs {error.name}: pip install 'ccplay[cluster]'") from None


def _serve(arguments: argparse.Namespace) -> int:
    import asyncio

    from ccplay.cluster import certificate, worker
    from ccplay.session import launch

    launch.lab_argv()
    if arguments.stdin:
        asyncio.run(worker.serve_for_stdin())
        # Labs that still run end with this process, and their threads must not delay it.
        os._exit(0)
    if arguments.where is None:
        raise UsageError("name the scheduler's address: ccplay cluster worker tls://HOST:8786")
    security = certificate.for_address(arguments.where, arguments.certificate)
    jobs = arguments.jobs or len(os.sched_getaffinity(0))
    asyncio.run(worker.serve(arguments.where, security, jobs))
    return 0


_LOCAL = ("host", "guest", "record", "capture", "captures", "share", "share_group", "receiver")
"""Options of ``run`` that are about a lab on this machine, or one that this machine starts."""


def of_run(arguments: argparse.Namespace) -> Elsewhere:
    """Return what opens the cluster that the command line of ``run`` names.

    Raises ``UsageError`` if Dask is missing or another option does not fit.
    """
    check_libraries()
    for name in _LOCAL:
        if getattr(arguments, name, None):
            option = f"--{name.replace('_', '-')}"
            raise UsageError(f"{option} does not go with --cluster, whose labs are on its workers")
    files = {path.name: _content(path) for path in custom.files(arguments)}

    @contextlib.asynccontextmanager
    async def open_benches(joining: Joining) -> AsyncIterator[Benches]:
        from ccplay.cluster.benches import ClusterBenches
        from ccplay.cluster.places import opened

        where, folder = arguments.cluster, arguments.certificate
        async with (
            opened(where, arguments.jobs or 0, folder, joining.tell) as (address, security),
            ClusterBenches(
                address,
                security,
                joining.stop,
                experiment=joining.experiment,
                files=files,
                jobs=arguments.jobs,
                kernel=joining.kernel,
                mixed_kernels=arguments.mixed_kernels,
                tell=joining.tell,
            ) as benches,
        ):
            tell(f"{len(benches.there())} workers at {address}")
            yield benches

    return open_benches


def check(scenario: Scenario) -> None:
    """Raise ``UsageError`` for a scenario whose files would stay on the workers."""
    from ccplay.model.commands import StartCapture

    for case in scenario.cases:
        for step in case.timeline:
            if isinstance(step.command, StartCapture):
                raise UsageError(
                    f"{step.place}: captures stay on the machine of the lab: leave out --cluster"
                )


def no_lab(_: Build) -> Source:
    """Start no lab here: raises ``LabError``."""
    raise LabError("runs of a cluster are made on its workers")


def _content(path: Path) -> bytes:
    from ccplay.files.reading import open_regular

    try:
        with open_regular(path) as file:
            return file.read()
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}") from None
