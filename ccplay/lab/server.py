"""The lab's server: commands on stdin, events on stdout, one JSON object per line."""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import gc
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable
from pathlib import Path

from ccplay import __version__
from ccplay.bpf.loaded import library
from ccplay.errors import CcplayError, LabError
from ccplay.lab import delay_line, software
from ccplay.lab.captures import CaptureFolder
from ccplay.lab.child import Child, fork
from ccplay.lab.custom.loading import library as disciplines_of_users
from ccplay.lab.lab import Lab
from ccplay.lab.traces import Traces
from ccplay.model.base import Command, Event
from ccplay.model.commands import Build, StartTogether, TraceData
from ccplay.model.disciplines import SUFFIX
from ccplay.model.events import Applied, Ended, Failed, Hello
from ccplay.model.samples import Sweep, TraceSamples
from ccplay.stream import wire
from ccplay.traffic import split_starts

_CHUNK = 1 << 16

_BACKLOG_LIMIT = 64 << 20
"""Bytes that may wait for a slow reader; beyond them sweeps and traces are dropped."""


def main() -> None:
    """Serve one lab until stdin ends, then exit the process, which ends every namespace.

    The command line, ``[DIRECTORY [MACHINE [FILE ...]]]``, names the directory of captures, this
    machine as the user knows it, and the files of the user's own algorithms and disciplines.
    """
    directory, machine = [*sys.argv[1:], "", ""][:2]
    code = LabError.exit_code
    try:
        files = [Path(file) for file in sys.argv[3:]]
        disciplines_of_users.add(file for file in files if file.suffix == SUFFIX)
        library.add_custom(file for file in files if file.suffix != SUFFIX)
        make_run_private()
        # Fork before there are threads, sockets and signal handlers, which the fork would copy.
        forked = fork(delay_line.main)
        disciplines = software.fork_processes()
        code = asyncio.run(_serve(CaptureFolder(Path(directory), machine), forked, disciplines))
    except CcplayError as error:
        print(f"{wire.LAB_ERROR}{error}", file=sys.stderr)
    except Exception:  # noqa: BLE001 - lost otherwise: Python would wait for the thread
        traceback.print_exc()
    # A thread may still wait in readline; the kernel cleans up everything else.
    os._exit(code)


async def _serve(place: CaptureFolder, forked: Child, disciplines: software.Forked) -> int:
    outlet = Outlet()
    await outlet.open()
    start = time.monotonic()
    lines = _read_stdin(asyncio.get_running_loop())
    try:
        traces = Traces()
        build = await _first_command(lines, traces)
        lab = Lab(
            outlet.put,
            start,
            lambda: outlet.dropped,
            place=place,
            forked=forked,
            disciplines=disciplines,
            traces=traces,
        )
        await lab.survey(build)
        outlet.put(
            Hello(
                t=0.0,
                format=wire.FORMAT,
                version=__version__,
                wall_time=time.time() - (time.monotonic() - start),
                sample_hz=build.sample_hz,
                capabilities=lab.capabilities,
                network=lab.network,
                build=build,
                starts_together=True,
            )
        )
        async with lab:
            # Existing objects are never freed; searching them would delay the first sweep.
            gc.freeze()
            gc.enable()
            await _obey(lab, lines, outlet.put)
    except CcplayError as error:
        print(f"{wire.LAB_ERROR}{error}", file=sys.stderr)
        await outlet.drain()
        return error.exit_code
    outlet.put(Ended(t=lab.clock(), reason="stdin ended"))
    await outlet.drain()
    return 0


async def _first_command(lines: asyncio.Queue[bytes | None], traces: Traces) -> Build:
    while (line := await lines.get()) is not None:
        command = wire.decode_command(line)
        if not isinstance(command, TraceData):
            break
        traces.receive(command)
    else:
        raise LabError("stdin ended before a first command")
    if not isinstance(command, Build):
        raise LabError('the first command must be "build"')
    return command


async def _obey(
    lab: Lab, lines: asyncio.Queue[bytes | None], emit: Callable[[Event], None]
) -> None:
    """Carry out commands in order until stdin ends; only ``StartTogether`` waits for its moment."""
    while (line := await lines.get()) is not None:
        command: Command | None = None
        begun = lab.clock()
        try:
            order = wire.decode_command(line)
            if isinstance(order, StartTogether):
                lab.start_together(order)
                continue
            if isinstance(order, TraceData):
                lab.traces.receive(order)
                continue
            command = order
            # Traffic that is due by now was requested before this command.
            await lab.starting.until(begun)
            for each in split_starts(order, lab.network):
                command, begun = each, lab.clock()
                done = await lab.apply(each)
                now = lab.clock()
                emit(Applied(t=now, command=done, took_s=round(now - begun, 6)))
        except CcplayError as error:
            emit(Failed(t=lab.clock(), command=command, message=str(error)))
        except Exception as error:  # noqa: BLE001 - one bad command must not end the lab
            text = f"{type(error).__name__}: {error}"
            emit(Failed(t=lab.clock(), command=command, message=f"a fault in ccplay: {text}"))


def _read_stdin(loop: asyncio.AbstractEventLoop) -> asyncio.Queue[bytes | None]:
    """Return a queue of stdin's lines, then None at its end.

    ``wire.END``, SIGTERM and SIGINT end the queue at once; they drop the lines that wait. A thread
    reads stdin, because it may be a file, a pipe or a terminal.
    """
    lines: asyncio.Queue[bytes | None] = asyncio.Queue()

    def end() -> None:
        while not lines.empty():
            lines.get_nowait()
        lines.put_nowait(None)

    def read() -> None:
        while line := sys.stdin.buffer.readline(wire.LONGEST_COMMAND + 1):
            if line == wire.END:
                loop.call_soon_threadsafe(end)
                return
            rest = line
            while rest and not rest.endswith(b"\n"):
                # The line is too long, which the decoder reports, or it is the last one.
                rest = sys.stdin.buffer.readline(_CHUNK)
            if line.strip():
                loop.call_soon_threadsafe(lines.put_nowait, line)
        loop.call_soon_threadsafe(lines.put_nowait, None)

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, end)
    threading.Thread(target=read, daemon=True).start()
    return lines


class Outlet:
    """Sends events to stdout, never waits for the reader, and counts dropped samples."""

    def __init__(self) -> None:
        self.dropped = 0
        self._transport: asyncio.WriteTransport | None = None

    async def open(self) -> None:
        """Connect to stdout; a regular file, which never blocks, is written to directly."""
        loop = asyncio.get_running_loop()
        with contextlib.suppress(ValueError):
            self._transport, _ = await loop.connect_write_pipe(_Reader, sys.stdout)

    def put(self, event: Event) -> None:
        """Send one event, or drop it if it is a sample and too much is already waiting."""
        line = wire.encode(event)
        if self._transport is None:
            sys.stdout.buffer.write(line)
        elif isinstance(event, Sweep | TraceSamples) and (
            self._transport.get_write_buffer_size() > _BACKLOG_LIMIT
        ):
            self.dropped += 1
        else:
            self._transport.write(line)

    async def drain(self) -> None:
        """Wait until the reader has received everything, at most a second."""
        deadline = time.monotonic() + 1.0
        while self._transport is not None and self._transport.get_write_buffer_size():
            if time.monotonic() > deadline or self._transport.is_closing():
                return
            await asyncio.sleep(0.005)
        sys.stdout.buffer.flush()


class _Reader(asyncio.Protocol):
    """Ends the lab when the reader of stdout closes it."""

    def connection_lost(self, _: Exception | None) -> None:
        os._exit(LabError.exit_code)


def make_run_private() -> None:
    """Mount an empty file system on /run, in this mount namespace only.

    iptables writes its lock there, which an ordinary user can't do on the host. Raises ``LabError``
    if the mount fails, and unless this process is the first of its PID namespace, as
    ``launch.UNSHARE`` makes it: elsewhere root would mount over the host's /run.
    """
    if os.getpid() != 1:
        raise LabError("a lab needs namespaces of its own: start it with 'ccplay lab'")
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mount(b"tmpfs", b"/run", b"tmpfs", 0, b"size=1m") != 0:
        reason = os.strerror(ctypes.get_errno())
        raise LabError(f"can't mount a private /run ({reason}): start labs with 'ccplay lab'")
