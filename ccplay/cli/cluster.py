"""Runs on a cluster: its certificate, its workers, and where the runs of ``ccplay run`` go."""

from __future__ import annotations

import argparse
import contextlib
import os
from pathlib import Path
from typing import TYPE_CHECKING

from ccplay.cli import options
from ccplay.errors import LabError, UsageError
from ccplay.visible import notify, put

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from ccplay.experiment.pool import RemoteWorkers
    from ccplay.experiment.runner import ExperimentInfo, OpenWorkers
    from ccplay.model.commands import Build
    from ccplay.scenario.values import Scenario
    from ccplay.stream.sources import Source


# --- ``ccplay cluster``: makes a cluster's certificate, or runs a worker --------------------------

_ABOUT = """\
  ccplay cluster certificate [DIR]   make the key and the certificate that all machines of a
                                     cluster have; copy DIR to each of them
  ccplay cluster worker ADDRESS      make runs for the scheduler at ADDRESS, until Ctrl-C

`dask worker` works too. A worker of this command reconnects by itself after a restart of the
scheduler or a loss of the network, and continues its runs meanwhile.

  dask scheduler --protocol tls --tls-ca-file cluster.pem --tls-cert cluster.pem \\
                 --tls-key cluster.key
  ccplay cluster worker tls://HOST:8786
  ccplay run race --cluster tls://HOST:8786 --out race
"""


def add_cluster(parser: argparse.ArgumentParser) -> None:
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
    parser.set_defaults(run=run_cluster)


def run_cluster(arguments: argparse.Namespace) -> int:
    """Run this command and return the exit code."""
    check_libraries()
    if arguments.action == "certificate":
        from ccplay.experiment.cluster import scheduler

        folder = Path(arguments.where or scheduler.standard_folder())
        for path in scheduler.write_certificate(folder):
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

    from ccplay.experiment.cluster import worker
    from ccplay.experiment.cluster.scheduler import security_for
    from ccplay.session import launch

    launch.lab_argv()
    if arguments.stdin:
        asyncio.run(worker.serve_for_stdin())
    if arguments.where is None:
        raise UsageError("name the scheduler's address: ccplay cluster worker tls://HOST:8786")
    security = security_for(arguments.where, arguments.certificate)
    jobs = arguments.jobs or len(os.sched_getaffinity(0))
    asyncio.run(worker.serve(arguments.where, security, jobs))
    return 0


# --- opens the workers of ``ccplay run --cluster``, and refuses options that don't go with them ---

_LOCAL = ("host", "guest", "record", "capture", "captures", "share", "share_group", "receiver")
"""Options of ``run`` that need a lab which this machine starts, so they can't go with a cluster."""


def of_run(arguments: argparse.Namespace) -> OpenWorkers:
    """Return the function that opens the workers of the cluster named by the command line.

    Raises ``UsageError`` if Dask is missing or another option does not fit.
    """
    check_libraries()
    for name in _LOCAL:
        if getattr(arguments, name, None):
            option = f"--{name.replace('_', '-')}"
            raise UsageError(
                f"{option} can't be combined with --cluster, whose labs run on its workers"
            )
    from ccplay.trace import delivery

    files = {path.name: _content(path) for path in options.own_files(arguments)}
    files |= delivery.packed_files()

    @contextlib.asynccontextmanager
    async def open_workers(wanted: ExperimentInfo) -> AsyncIterator[RemoteWorkers]:
        from ccplay.experiment.cluster.distribution import ClusterWorkers
        from ccplay.experiment.cluster.scheduler import open_scheduler

        where, folder = arguments.cluster, arguments.certificate
        async with (
            open_scheduler(where, arguments.jobs or 0, folder, wanted.report) as (
                address,
                security,
            ),
            ClusterWorkers(
                address,
                security,
                wanted.stop,
                experiment=wanted.experiment,
                files=files,
                jobs=arguments.jobs,
                kernel=wanted.kernel,
                mixed_kernels=arguments.mixed_kernels,
                report=wanted.report,
            ) as workers,
        ):
            count = len(workers.available())
            notify(f"{count} worker{'s' if count > 1 else ''} at {address}")
            yield workers

    return open_workers


def add_where(parser: argparse.ArgumentParser) -> None:
    """Add the options that name a cluster."""
    parser.add_argument(
        "--cluster",
        metavar="WHERE",
        help="run on Dask workers: those of the scheduler at tls://HOST:PORT or "
        "tcp://127.0.0.1:PORT, N on this machine (local:N), or one on each host that a file lists, "
        "over ssh (ssh:HOSTFILE)",
    )
    parser.add_argument(
        "--certificate",
        type=Path,
        metavar="DIR",
        help="directory of the cluster's certificate (see ccplay cluster certificate)",
    )
    parser.add_argument(
        "--mixed-kernels",
        action="store_true",
        help="use workers with different kernels in one experiment",
    )


def add_away(parser: argparse.ArgumentParser) -> None:
    """Add the options for an experiment that continues without this machine."""
    group = parser.add_mutually_exclusive_group()
    for name, what in (
        ("detach", "with --cluster: hand the runs over to the cluster, and return at once"),
        (
            "attach",
            "fetch the finished runs of a detached experiment, and watch the rest until the end",
        ),
        ("cancel", "end a detached experiment; its finished runs wait for --attach"),
    ):
        group.add_argument(f"--{name}", dest="away", action="store_const", const=name, help=what)
    parser.set_defaults(away="")


def check_away(arguments: argparse.Namespace) -> None:
    """Raise ``UsageError`` if an option contradicts ``--detach``, ``--attach`` or ``--cancel``."""
    if not (away := getattr(arguments, "away", "")):
        return
    where = arguments.cluster or ""
    if not where.startswith(("tcp://", "tls://")):
        raise UsageError(
            f"--{away} needs a scheduler that outlives this command: --cluster tls://HOST:PORT"
        )
    if arguments.out is None:
        raise UsageError(f"--{away} needs a run directory: name one with --out DIR")
    if arguments.until_ci is not None:
        raise UsageError(
            f"--{away} can't be combined with --until-ci, which decides by results; use --repeats"
        )
    if arguments.report and away != "attach":
        raise UsageError(f"--report can't be combined with --{away}: add it to --attach")


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
    """Raise ``LabError``: a cluster's labs run on its workers."""
    raise LabError("runs of a cluster are made on its workers")


def _content(path: Path) -> bytes:
    from ccplay.files.reading import open_regular

    try:
        with open_regular(path) as file:
            return file.read()
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}") from None
