"""The place of the workers: a scheduler's address, or workers started for one experiment."""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import json
import logging
import re
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import dask
from distributed import Client, Scheduler
from distributed.security import Security
from distributed.utils import get_ip
from platformdirs import user_cache_path, user_config_path

from ccplay.errors import CcplayError, UsageError
from ccplay.files import writing
from ccplay.visible import printable

FORMS = "tcp://HOST:PORT, tls://HOST:PORT, local:N or ssh:HOSTFILE"
_MOST_LOCAL = 64
_CONNECT_S = 10.0
_AGAIN_S = 3.0
"""Seconds before a worker that has ended is restarted."""
_END_S = 10.0
_SSH = ("ssh", "-T", "-o", "BatchMode=yes", "-o", "ServerAliveInterval=15", "--")
_HERE = (sys.executable, "-P", "-m", "ccplay")
_HOST = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.@:\[\]%-]*")


@asynccontextmanager
async def open_scheduler(
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
        yield where, security_for(where, folder)
        return
    words, host = _start_commands(where)
    pair = make_certificate()
    security = security_of(*pair)
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
        tasks = [asyncio.create_task(_keep_running(argv, greeted, report)) for argv in words]
        try:
            yield scheduler.address, security
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)


def _start_commands(where: str) -> tuple[list[list[str]], str]:
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
        raise UsageError(f"{path} names no hosts: write one on each line")
    return [host for host in hosts if host]


async def _keep_running(argv: Sequence[str], greeted: bytes, report: Callable[[str], None]) -> None:
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
            where = f"on {argv[-2]}" if argv[0] == "ssh" else "of this machine"
            why = f"a worker {where} ended with exit code {code}: {last}"
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


CERTIFICATE, KEY = "cluster.pem", "cluster.key"
_DAYS = "3650"
_PEM = re.compile(r"(-----BEGIN ([A-Z ]+)-----.+?-----END \2-----\n)", re.DOTALL)


def standard_folder() -> Path:
    """Return the directory of the user's own certificate."""
    return user_config_path("ccplay") / "cluster"


def write_certificate(folder: Path) -> list[Path]:
    """Make a key and its certificate; return their paths. Raises ``UsageError`` if one exists."""
    paths = [folder / name for name in (CERTIFICATE, KEY)]
    for path in paths:
        if path.exists() or path.is_symlink():
            raise UsageError(f"{path} already exists: delete it, or name another directory")
    certificate, key = make_certificate()
    with writing.explained(folder, CcplayError):
        writing.make_directory(folder)
        folder.chmod(0o700)
        for path, content in zip(paths, (certificate, key), strict=True):
            writing.write(path, content.encode())
            path.chmod(0o600)
    return paths


def make_certificate() -> tuple[str, str]:
    """Return a new certificate and its key, as PEM. Raises ``CcplayError``."""
    argv = ["openssl", "req", "-x509", "-newkey", "ec", "-nodes", "-days", _DAYS]
    argv += ["-pkeyopt", "ec_paramgen_curve:prime256v1", "-subj", "/CN=ccplay cluster"]
    # To stdout: a file with the key would outlive a process that is killed.
    argv += ["-out", "/dev/stdout", "-keyout", "/dev/stdout"]
    try:
        done = subprocess.run(argv, check=False, capture_output=True, text=True)
    except FileNotFoundError:
        raise CcplayError("openssl is not installed (apt install openssl)") from None
    found = {part: text for text, part in _PEM.findall(done.stdout)}
    if done.returncode != 0 or not found.keys() >= {"CERTIFICATE", "PRIVATE KEY"}:
        messages = done.stderr.strip().splitlines() or [""]
        raise CcplayError(f"openssl can't make a certificate: {messages[-1]}")
    return found["CERTIFICATE"], found["PRIVATE KEY"]


def security_of(certificate: str, key: str) -> Security:
    """Return the TLS settings for a certificate and its key, both the PEM itself or paths."""
    roles = ("client", "scheduler", "worker")
    pairs = {f"tls_{role}_cert": certificate for role in roles}
    pairs |= {f"tls_{role}_key": key for role in roles}
    return Security(tls_ca_file=certificate, require_encryption=True, **pairs)


def security(folder: Path | None) -> Security:
    """Return the TLS settings: the pair in ``folder``, or else Dask's own settings.

    Raises ``UsageError`` if neither exists.
    """
    found = folder or (standard_folder() if (standard_folder() / KEY).exists() else None)
    if found is None:
        configured = Security(require_encryption=True)
        if not configured.tls_ca_file:
            raise UsageError(
                "tls:// needs the cluster's certificate: copy it to "
                f"{standard_folder()}, or make one (ccplay cluster certificate) for all its "
                "machines"
            )
        return configured
    for name in (CERTIFICATE, KEY):
        if not (found / name).is_file():
            raise UsageError(f"{found / name}: no such file (ccplay cluster certificate DIR)")
    return security_of(str(found / CERTIFICATE), str(found / KEY))


def is_loopback(address: str) -> bool:
    """Return whether an address such as ``tcp://127.0.0.1:8786`` stays on this machine."""
    host = urlsplit(address).hostname or ""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def security_for(address: str, folder: Path | None) -> Security | None:
    """Return the TLS settings for a scheduler; None for plain tcp on this machine.

    Raises ``UsageError`` for plain tcp to another machine, and for anything but tcp and tls.
    """
    scheme = urlsplit(address).scheme
    try:
        complete = bool(urlsplit(address).hostname and urlsplit(address).port)
    except ValueError:
        complete = False
    if scheme not in ("tcp", "tls") or not complete:
        raise UsageError(f"{address!r} is not an address of a scheduler, such as tls://HOST:8786")
    if scheme == "tls":
        return security(folder)
    if not is_loopback(address):
        raise UsageError(
            f"{address}: over plain tcp anyone on the network could run programs as you: start "
            "scheduler and workers with TLS (ccplay cluster certificate), and name tls://…"
        )
    return None


# --- what a started worker needs to know ----------------------------------------------------------


def greeting(address: str, pair: tuple[str, str], labs: int) -> bytes:
    """Return the greeting that ``serve_for_stdin`` reads, one line of JSON."""
    order = {"address": address, "certificate": pair[0], "key": pair[1], "labs": labs}
    return json.dumps(order).encode() + b"\n"


def scratch() -> str:
    """Return the folder for Dask's own files, always the same: Dask tidies it after killed ones."""
    return str(user_cache_path("ccplay") / "dask")


# --- the connection to a scheduler ----------------------------------------------------------------


class SchedulerConnection:
    """A connection to the scheduler of a cluster, which may be lost and made again."""

    def __init__(self, address: str, security: Security | None) -> None:
        self.address = address
        self.client: Client | None = None
        """Dask's client; None while there is no connection."""
        self.connected = False
        """Whether the scheduler has answered the last query for its workers."""
        self._security = security

    async def connect(self) -> Client:
        """Connect, and return Dask's client. Raises ``OSError`` and ``TimeoutError``."""
        client = Client(
            self.address,
            asynchronous=True,
            security=self._security,
            timeout=_CONNECT_S,
            set_as_default=False,
            name="ccplay",
        )
        try:
            self.client = await asyncio.wait_for(client, _CONNECT_S + 5)
        except BaseException:
            with contextlib.suppress(Exception):
                await client.close(timeout=0)
            raise
        return self.client

    async def count_threads(self, *, within_s: float) -> dict[str, int]:
        """Return the workers' addresses and threads; reconnect if the connection was lost.

        Raises ``OSError``, ``RuntimeError`` and ``TimeoutError``.
        """
        client, self.client = self.client, None
        if client is None or client.status in ("closed", "closing"):
            client = await self.connect()
        self.client = client
        asked = client.scheduler.ncores()
        found: dict[str, int] = await asyncio.wait_for(asked, within_s)
        return found

    async def call(self, address: str, work: Any, *arguments: Any, within_s: float) -> bytes:
        """Call a function on a worker; raises ``OSError``, ``TimeoutError``, and its exceptions."""
        if self.client is None:
            raise OSError("not connected")
        asked: Awaitable[dict[str, Any]] = self.client.run(
            work, *arguments, workers=[address], on_error="return"
        )
        answer = (await asyncio.wait_for(asked, within_s)).get(address)
        if isinstance(answer, BaseException):
            raise answer
        if not isinstance(answer, bytes):
            raise OSError("the worker is gone")
        return answer

    async def close(self) -> None:
        """Disconnect."""
        if self.client is not None:
            with contextlib.suppress(Exception):
                await self.client.close(timeout=2)
