"""The place of the workers: a scheduler's address, or workers started for one experiment."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import re
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import dask
from distributed import Scheduler
from distributed.security import Security
from distributed.utils import get_ip

from ccplay.errors import UsageError
from ccplay.experiment.cluster import certificate
from ccplay.experiment.cluster.serving import greeting, scratch
from ccplay.visible import printable

FORMS = "tcp://HOST:PORT, tls://HOST:PORT, local:N or ssh:HOSTFILE"
_MOST_LOCAL = 64
_AGAIN_S = 3.0
"""Seconds before a worker that has ended is restarted."""
_END_S = 10.0
_SSH = ("ssh", "-T", "-o", "BatchMode=yes", "-o", "ServerAliveInterval=15", "--")
_HERE = (sys.executable, "-P", "-m", "ccplay")
_HOST = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.@:\[\]%-]*")


@asynccontextmanager
async def opened(
    where: str, jobs: int, folder: Path | None, report: Callable[[str], None]
) -> AsyncIterator[tuple[str, Security | None]]:
    """Yield the address and the TLS settings of the scheduler that ``where`` names or starts.

    ``jobs`` is the number of parallel runs on each started worker, 0 for the number of its cores;
    ``folder`` has the certificate of a cluster. Raises ``UsageError``.
    """
    # Dask logs to stderr; ccplay itself reports what matters. The client's logger has a level too.
    for name in ("distributed", "distributed.client"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    if where.startswith(("tcp://", "tls://")):
        yield where, certificate.for_address(where, folder)
        return
    words, host = _started(where)
    pair = certificate.fresh()
    security = certificate.security_of(*pair)
    dask.config.set({"temporary-directory": scratch()})
    scheduler: Any = Scheduler(
        host=host,
        port=0,
        protocol="tls://",
        security=security,
        dashboard=False,
        dashboard_address="127.0.0.1:0",
    )
    async with scheduler:
        greeted = greeting(scheduler.address, pair, jobs)
        tasks = [asyncio.create_task(_kept_running(argv, greeted, report)) for argv in words]
        try:
            yield scheduler.address, security
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)


def _started(where: str) -> tuple[list[list[str]], str]:
    """Return the commands that start workers, and the address at which they reach this process."""
    kind, _, rest = where.partition(":")
    worker = ("cluster", "worker", "--stdin")
    if kind == "local":
        if not rest.isdecimal() or not 1 <= int(rest) <= _MOST_LOCAL:
            raise UsageError(f"--cluster {where}: local:N needs a number from 1 to {_MOST_LOCAL}")
        return [[*_HERE, *worker] for _ in range(int(rest))], "127.0.0.1"
    if kind == "ssh" and rest:
        hosts = read_hosts(Path(rest))
        # All hosts reach this machine at the address for the first one.
        own = _address_for(hosts[0])
        return [[*_SSH, host, " ".join(("ccplay", *worker))] for host in hosts], own
    raise UsageError(f"--cluster {where}: must be one of {FORMS}")


def _address_for(host: str) -> str:
    """Return this machine's source address towards a host. Raises ``UsageError``."""
    done = subprocess.run(["ssh", "-G", "--", host], check=False, capture_output=True, text=True)
    words = dict(line.split(" ", 1) for line in done.stdout.splitlines() if " " in line)
    name = words.get("hostname", host.rpartition("@")[2])
    try:
        own: str = get_ip(name)
    except OSError as error:
        raise UsageError(f"{host}: {error.strerror}") from None
    return own


def read_hosts(path: Path) -> list[str]:
    """Return the hosts in a file, one a line; ``#`` begins a comment. Raises ``UsageError``."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path}: {getattr(error, 'strerror', 'not a text file')}") from None
    hosts = [line.partition("#")[0].strip() for line in lines]
    for number, host in enumerate(hosts, 1):
        if host and not _HOST.fullmatch(host):
            raise UsageError(f"{path}, line {number}: {host[:60]!r} is not a host for ssh(1)")
    if not any(hosts):
        raise UsageError(f"{path}: it contains no hosts: write one per line")
    return [host for host in hosts if host]


async def _kept_running(argv: Sequence[str], greeted: bytes, report: Callable[[str], None]) -> None:
    """Keep a worker running, restarted whenever it ends, until cancelled."""
    reported = set()
    while True:
        process = await asyncio.create_subprocess_exec(
            *argv,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
            # Ctrl-C at the terminal is not for workers; they end when their stdin is closed.
            process_group=0,
        )
        stdin, stderr = process.stdin, process.stderr
        try:
            if stdin is None or stderr is None:
                return
            with contextlib.suppress(ConnectionError):
                stdin.write(greeted)
                await stdin.drain()
            last = ""
            while line := await stderr.readline():
                last = printable(line.decode(errors="replace").strip())[:300] or last
            code = await process.wait()
            why = f"{_place(argv)} ended with exit code {code}: {last}"
            if why not in reported:
                reported.add(why)
                report(why)
            await asyncio.sleep(_AGAIN_S)
        finally:
            if stdin is not None:
                stdin.close()
            if process.returncode is None:
                with contextlib.suppress(asyncio.TimeoutError):
                    await asyncio.wait_for(process.wait(), _END_S)
            if process.returncode is None:
                process.kill()
                await process.wait()


def _place(argv: Sequence[str]) -> str:
    return f"the worker on {argv[-2]}" if argv[0] == "ssh" else "a worker of this machine"
