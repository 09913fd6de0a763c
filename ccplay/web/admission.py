"""Admission of browsers: by the token in the link and the server's names in ``Host``."""

from __future__ import annotations

import hmac
import ipaddress
import secrets
import socket
from urllib.parse import urlsplit

from ccplay.share.browsers import Place

TOKEN_BYTES = 16
"""Number of random bytes in a token, which has 22 characters in a link."""

_ANY = ("0.0.0.0", "::")  # noqa: S104 - compared only


def make_token() -> str:
    """Return a new random token."""
    return secrets.token_urlsafe(TOKEN_BYTES)


class Admission:
    """Checks tokens, hosts and origins of requests."""

    def __init__(self, place: Place, token: str) -> None:
        self._token = token.encode()
        self._names = {"localhost", place.address.lower(), socket.gethostname().lower()}

    def knows(self, token: str) -> bool:
        """Return whether this is the token; the comparison takes constant time."""
        return hmac.compare_digest(token.encode("utf-8", "replace"), self._token)

    def is_ours(self, host: str) -> bool:
        """Return whether a ``Host`` names this server; another name may be DNS rebinding.

        Any IP address is accepted; of names only the machine's own and ``localhost``.
        """
        try:
            name = urlsplit(f"//{host}").hostname or ""
        except ValueError:
            return False
        name = name.rstrip(".")
        if name in self._names or name.removesuffix(".local") in self._names:
            return True
        try:
            ipaddress.ip_address(name)
        except ValueError:
            return False
        return True

    @staticmethod
    def is_same(origin: str | None, host: str) -> bool:
        """Return whether a request is from our page, or has no origin, as a link opened by hand."""
        try:
            return origin is None or urlsplit(origin).netloc == host
        except ValueError:
            return False


def link_name(place: Place) -> str:
    """Return the address for a link: if the server listens on all, one that others can reach."""
    if place.address not in _ANY:
        return f"[{place.address}]" if ":" in place.address else place.address
    family = socket.AF_INET6 if place.address == "::" else socket.AF_INET
    target = ("2001:db8::1", 9) if family == socket.AF_INET6 else ("192.0.2.1", 9)
    with socket.socket(family, socket.SOCK_DGRAM) as probe:
        try:
            # Nothing is sent: the kernel only chooses the source address.
            probe.connect(target)
            found: str = probe.getsockname()[0]
        except OSError:
            return socket.gethostname()
    return f"[{found}]" if ":" in found else found
