"""An algorithm's own source compiled for this machine, and a connection that is driven by it.

No packets, no clock: a round trip is as long as it is said to be, at windows that no lab reaches.
"""

import ctypes
import subprocess
from pathlib import Path
from typing import Any

from ccplay.bpf.build import _types, _vmlinux_header

SHIM = Path(__file__).with_name("native.c")

CWR, RECOVERY, LOSS = 2, 3, 4
"""Numbers of congestion states in ``enum tcp_ca_state``: after a mark, a loss, a timeout."""


def compiled(source: Path, header: Path, folder: Path, shim: Path = SHIM) -> ctypes.CDLL:
    """Compile a source with the headers of its own folder, into ``folder``.

    ``shim`` includes the source, and ``native.c`` if it has more functions to call.
    """
    library = folder / f"{source.stem}.so"
    types = _vmlinux_header(_types()).parent
    options = ("-w", "-O2", "-std=gnu11", "-shared", "-fPIC", f'-DSOURCE="{source}"')
    subprocess.run(
        ["clang", *options, f"-I{types}", f"-I{header}", "-o", str(library), str(shim)], check=True
    )
    return ctypes.CDLL(str(library))


class Connection:
    """A connection in congestion avoidance at ``cwnd``; its path has ``base_us`` and no queue."""

    def __init__(self, lib: ctypes.CDLL, cwnd: int, base_us: int = 100_000) -> None:
        self._lib = lib
        named = ctypes.c_char_p(ctypes.addressof(ctypes.c_char.in_dll(lib, "shown_names"))).value
        self._names = (named or b"").decode().removeprefix("ccplay.shown:").split()
        self._memory = ctypes.create_string_buffer(lib.socket_size())
        self._sk = ctypes.c_void_p(ctypes.addressof(self._memory))
        self.base_us = base_us
        lib.open_socket(self._sk)
        self.set(snd_cwnd=cwnd, snd_ssthresh=2, tcp_mstamp=10**6, snd_una=1000, snd_nxt=1000)
        self.set(mss_cache=1448, srtt_us=8 * base_us)
        lib.begin(self._sk)

    @property
    def cwnd(self) -> int:
        return int(self._field("snd_cwnd").value)

    @property
    def ssthresh(self) -> int:
        return int(self._field("snd_ssthresh").value)

    @property
    def now_s(self) -> float:
        return float(self._field("tcp_mstamp").value) / 1e6

    @property
    def shown(self) -> dict[str, int]:
        """Values that the algorithm exports, by name."""
        values = list((ctypes.c_uint64 * 8).in_dll(self._lib, "now_shown"))
        return dict(zip(self._names, values, strict=False))

    def set(self, **fields: int) -> None:
        for name, value in fields.items():
            self._field(name).value = value

    def round_trip(self, queue_us: int = 0, acked: int = 2, marked: float = 0.0) -> int:
        """Acknowledge a window by ACKs of several segments; return the growth of cwnd.

        ``marked`` is the share of segments that were marked.
        """
        before = self.cwnd
        self._lib.round_trip(self._sk, self.base_us + queue_us, acked, round(1000 * marked))
        return self.cwnd - before

    def congestion(self, state: int = RECOVERY) -> float:
        """Report a mark, a loss or a timeout, and recover; return the share of cwnd left."""
        before = self.cwnd
        self._lib.congestion(self._sk, state)
        return self.ssthresh / before

    def undo(self) -> None:
        """Report that the last congestion was none."""
        self._lib.undo(self._sk)

    def _field(self, name: str) -> Any:
        kind = ctypes.c_uint64 if name == "tcp_mstamp" else ctypes.c_uint32
        where = getattr(self._lib, f"field_{name}")
        where.restype = ctypes.POINTER(kind)
        return where(self._sk).contents
