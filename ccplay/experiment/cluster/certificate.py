"""The certificate by which the machines of a cluster authenticate each other: TLS as Dask uses it.

All machines of a cluster have the same key and self-signed certificate: their holders can run
programs as the workers' user, and nobody else can connect.
"""

from __future__ import annotations

import ipaddress
import re
import subprocess
from pathlib import Path
from urllib.parse import urlsplit

from distributed.security import Security
from platformdirs import user_config_path

from ccplay.errors import CcplayError, UsageError
from ccplay.files import writing

CERTIFICATE, KEY = "cluster.pem", "cluster.key"
_DAYS = "3650"
_PEM = re.compile(r"(-----BEGIN ([A-Z ]+)-----.+?-----END \2-----\n)", re.DOTALL)


def standard() -> Path:
    """Return the directory of the user's own certificate."""
    return user_config_path("ccplay") / "cluster"


def make(folder: Path) -> list[Path]:
    """Make a key and its certificate; return their paths. Raises ``UsageError`` if one exists."""
    paths = [folder / name for name in (CERTIFICATE, KEY)]
    for path in paths:
        if path.exists() or path.is_symlink():
            raise UsageError(f"{path} already exists: delete it, or name another directory")
    certificate, key = fresh()
    with writing.explained(folder, CcplayError):
        writing.make_directory(folder)
        folder.chmod(0o700)
        for path, content in zip(paths, (certificate, key), strict=True):
            writing.write(path, content.encode())
            path.chmod(0o600)
    return paths


def fresh() -> tuple[str, str]:
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
    found = folder or (standard() if (standard() / KEY).exists() else None)
    if found is None:
        configured = Security(require_encryption=True)
        if not configured.tls_ca_file:
            raise UsageError(
                "tls:// needs the cluster's certificate: copy it to "
                f"{standard()}, or make one (ccplay cluster certificate) for all its machines"
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


def for_address(address: str, folder: Path | None) -> Security | None:
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
