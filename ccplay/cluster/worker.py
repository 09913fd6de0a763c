"""A worker that reconnects when the scheduler is back; its labs continue meanwhile."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import sys
from typing import Any, NoReturn

import dask
from distributed import Worker
from distributed.security import Security
from platformdirs import user_cache_path

from ccplay.cluster import certificate
from ccplay.cluster.labs import machine
from ccplay.visible import notify

_AGAIN_S = 1.0
"""Seconds between attempts to reach the scheduler."""
_CONNECT_S = "10s"
_LONGEST = 1 << 16


class _LabWorker(Worker):  # type: ignore[misc] # distributed has no types
    """Dask's worker, which leaves labs running when its scheduler goes away."""

    async def close(self, *arguments: Any, **options: Any) -> Any:
        """Close without waiting for runs, which the next worker of this process takes over."""
        return await super().close(*arguments, **{**options, "executor_wait": False})


def scratch() -> str:
    """Return the folder for Dask's own files, always the same: Dask tidies it after killed ones."""
    return str(user_cache_path("ccplay") / "dask")


async def serve(address: str, security: Security | None, labs: int) -> None:
    """Make runs for the scheduler at ``address``, up to ``labs`` in parallel, until cancelled."""
    dask.config.set({"distributed.comm.timeouts.connect": _CONNECT_S})
    for name in ("distributed.worker", "distributed.core", "distributed.batched"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    missing = False
    while True:
        worker = _LabWorker(
            address,
            nthreads=labs,
            name=f"{machine()}-{os.getpid()}",
            security=security,
            local_directory=scratch(),
            memory_limit=0,
            dashboard=False,
        )
        with contextlib.suppress(OSError, RuntimeError, asyncio.TimeoutError):
            async with worker:
                notify(f"{machine()}: makes runs for {address}, up to {labs} at a time")
                missing = False
                await worker.finished()
        if not missing:
            notify(f"{machine()}: no scheduler at {address}; reconnecting")
        missing = True
        await asyncio.sleep(_AGAIN_S)


async def serve_for_stdin() -> NoReturn:
    """Serve as the greeting on stdin states, until stdin is closed; then end this process."""
    loop = asyncio.get_running_loop()
    line = await loop.run_in_executor(None, sys.stdin.buffer.readline, _LONGEST)
    order = json.loads(line)
    security = certificate.security_of(order["certificate"], order["key"])
    labs = order["labs"] or len(os.sched_getaffinity(0))
    serving = asyncio.create_task(serve(order["address"], security, labs))
    closed = loop.run_in_executor(None, sys.stdin.buffer.read, 1)
    await asyncio.wait({serving, closed}, return_when=asyncio.FIRST_COMPLETED)
    if serving.done():
        serving.result()
    # Labs end with this process. A worker that closes would wait for ever for a scheduler that was
    # killed, and so would the threads of its runs.
    os._exit(0)


def greeting(address: str, pair: tuple[str, str], labs: int) -> bytes:
    """Return the greeting that ``serve_for_stdin`` reads, one line of JSON."""
    order = {"address": address, "certificate": pair[0], "key": pair[1], "labs": labs}
    return json.dumps(order).encode() + b"\n"
