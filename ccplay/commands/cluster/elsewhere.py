"""What ``ccplay run --cluster`` needs: the benches, and refusals of what does not go with them."""

from __future__ import annotations

import argparse
import contextlib
from pathlib import Path
from typing import TYPE_CHECKING

from ccplay.commands import custom
from ccplay.commands.cluster.command import check_libraries
from ccplay.errors import LabError, UsageError
from ccplay.visible import tell

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from ccplay.experiment.bench import Benches
    from ccplay.experiment.headless import Elsewhere, Joining
    from ccplay.model.commands import Build
    from ccplay.scenario.values import Scenario
    from ccplay.stream.sources import Source

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
