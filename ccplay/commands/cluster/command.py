"""``ccplay cluster``: makes a cluster's certificate, or runs a worker."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from ccplay.commands import options
from ccplay.errors import UsageError
from ccplay.visible import put

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
    if arguments.where is None:
        raise UsageError("name the scheduler's address: ccplay cluster worker tls://HOST:8786")
    security = certificate.for_address(arguments.where, arguments.certificate)
    jobs = arguments.jobs or len(os.sched_getaffinity(0))
    asyncio.run(worker.serve(arguments.where, security, jobs))
    return 0
