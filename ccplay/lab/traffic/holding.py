"""A program that is held at a system call: it is ready to send, and continues when it is released.

A seccomp filter of the program makes the kernel ask the lab about that call, see
seccomp_unotify(2), and the program sleeps in it until the lab answers. By then nothing has been
sent, and no time of a packet has been taken. A program that is never released dies with the lab.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import errno
import fcntl
import os
import platform
import select
import socket
import struct

import msgspec

_SET_MODE_FILTER = 1
_NEW_LISTENER, _SPEC_ALLOW = 1 << 3, 1 << 2
"""Flags of seccomp(2): notify us, and keep the processor as fast as without a filter."""

_USER_NOTIF, _ALLOW = 0x7FC00000, 0x7FFF0000
_LOAD, _IF_EQUAL, _RETURN = 0x20, 0x15, 0x06
"""Instructions of classic BPF: BPF_LD | BPF_W | BPF_ABS, BPF_JMP | BPF_JEQ | BPF_K, BPF_RET |
BPF_K."""
_NUMBER, _THIRD_ARGUMENT = 0, 32
"""Offsets in struct seccomp_data of the call's number, and of the lower half of its third argument,
which has 64 bits, on a little-endian machine."""

_INSTRUCTION = struct.Struct("HBBI")
_QUESTION, _ANSWER = struct.Struct("QII64x"), struct.Struct("QqiI")
"""struct seccomp_notif and seccomp_notif_resp of linux/seccomp.h."""
_RECV, _SEND = 0xC0502100, 0xC0182101
_CONTINUE = 1

_GENERIC = {"seccomp": 277, "connect": 203, "read": 63, "sched_yield": 124}
_CALLS = {
    "x86_64": {"seccomp": 317, "connect": 42, "read": 0, "sched_yield": 24},
    "aarch64": _GENERIC,
    "riscv64": _GENERIC,
}
"""Numbers of system calls by machine; newer machines have those of asm-generic/unistd.h."""

_libc = ctypes.CDLL(None, use_errno=True)


class Hold(msgspec.Struct, frozen=True):
    """The place at which a program is held."""

    call: str
    """Name of the system call; it must be rare, because the lab is asked each time."""
    passed: int = 0
    """Number of these calls that pass before the program is held."""
    octets: int | None = None
    """Length in bytes of the calls that count; None if every call counts."""


class Held:
    """A program under a filter. Call ``install`` in the child before exec, then ``attach``."""

    def __init__(self, hold: Hold) -> None:
        """Make the filter. Raises ``OSError`` on a machine whose system calls are unknown."""
        calls = _CALLS.get(platform.machine())
        if calls is None:
            raise OSError(errno.ENOSYS, f"seccomp is not known on {platform.machine()}")
        self._seccomp = calls["seccomp"]
        number = calls[hold.call]
        wanted = [(_NUMBER, number)]
        if hold.octets is not None:
            wanted.append((_THIRD_ARGUMENT, hold.octets))
        code = [
            instruction
            for place, (offset, value) in enumerate(wanted)
            for instruction in (
                _INSTRUCTION.pack(_LOAD, 0, 0, offset),
                # On a mismatch, skip the remaining conditions and the notification.
                _INSTRUCTION.pack(_IF_EQUAL, 0, 2 * (len(wanted) - place) - 1, value),
            )
        ]
        code += [
            _INSTRUCTION.pack(_RETURN, 0, 0, _USER_NOTIF),
            _INSTRUCTION.pack(_RETURN, 0, 0, _ALLOW),
        ]
        self._instructions = ctypes.create_string_buffer(b"".join(code))
        # struct sock_fprog: number and address of the instructions.
        self._program = struct.pack("H6xQ", len(code), ctypes.addressof(self._instructions))
        self._to_pass = hold.passed
        self._ours, self._childs = socket.socketpair()
        self._listener: int | None = None
        self._waiting: int | None = None
        self._released = False
        self.approaching = asyncio.Event()
        """Event set when the program's next such call is the one at which it is held."""
        if not self._to_pass:
            self.approaching.set()
        self.arrived = asyncio.Event()
        """Event set when the program is held at its call; never if it ends before."""

    def install(self) -> None:
        """Install the filter in this process, between fork and exec. Raises ``OSError``."""
        flags = _NEW_LISTENER | _SPEC_ALLOW
        listener = _libc.syscall(self._seccomp, _SET_MODE_FILTER, flags, self._program)
        if listener < 0:
            raise OSError(ctypes.get_errno(), "seccomp")
        socket.send_fds(self._childs, [b"."], [listener])

    def attach(self) -> None:
        """Receive the child's descriptor, and answer notifications. Raises ``OSError``."""
        self._ours.setblocking(False)
        _, descriptors, _, _ = socket.recv_fds(self._ours, 1, 1)
        self.close()
        (self._listener,) = descriptors
        asyncio.get_running_loop().add_reader(self._listener, self._asked)

    def close(self) -> None:
        """Close the socket pair on which the child sends its descriptor."""
        self._ours.close()
        self._childs.close()

    def release(self) -> None:
        """Release the program, now or as soon as it reaches its call."""
        self._released = True
        if self._waiting is not None:
            question, self._waiting = self._waiting, None
            self._answer(question)

    def _end(self) -> None:
        if self._listener is not None:
            asyncio.get_running_loop().remove_reader(self._listener)
            os.close(self._listener)
            self._listener = None

    def _asked(self) -> None:
        assert self._listener is not None  # noqa: S101 - it is what is read
        poll = select.poll()
        poll.register(self._listener, select.POLLIN)
        if not any(event & select.POLLIN for _, event in poll.poll(0)):
            # All have ended; on older kernels another request would never return.
            self._end()
            return
        question = bytearray(_QUESTION.size)
        try:
            fcntl.ioctl(self._listener, _RECV, question)
        except OSError:
            # The program was killed before its notification was read.
            return
        number = _QUESTION.unpack(question)[0]
        if self._to_pass:
            self._to_pass -= 1
            if not self._to_pass:
                self.approaching.set()
        elif not self.arrived.is_set():
            self._waiting = number
            self.arrived.set()
            if self._released:
                self.release()
            return
        self._answer(number)

    def _answer(self, question: int) -> None:
        if self._listener is not None:
            # If it was killed meanwhile, no process receives the answer.
            with contextlib.suppress(OSError):
                answer = bytearray(_ANSWER.pack(question, 0, 0, _CONTINUE))
                fcntl.ioctl(self._listener, _SEND, answer)
