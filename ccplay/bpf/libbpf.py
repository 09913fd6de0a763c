"""Calls libbpf through ctypes: loads an object and registers its ``tcp_congestion_ops``.

Registered through a BPF link, an algorithm lives as long as a process holds the link's file
descriptor. The kernel closes the descriptors of a process however it ends, so nothing remains, even
after SIGKILL. bpftool(8) and older versions of libbpf register permanently instead (``BPF_F_LINK``
of include/uapi/linux/bpf.h came with Linux 6.4).
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import threading
from collections.abc import Generator
from functools import cache

from ccplay.errors import CcplayError, UnsupportedError

_F_LINK = 1 << 13
_STRUCT_OPS = 44
"""``BPF_STRUCT_OPS`` of ``enum bpf_attach_type``."""

_LOG_BYTES = 1 << 20
"""Bytes of the verifier's log to keep, from its end, which has the reason. By default libbpf
fetches the whole log, in many attempts: about 100 MB for an endless loop."""

_LINK_BY_ITSELF = (1, 2)
"""First version of libbpf that creates the link itself if the map has ``BPF_F_LINK``."""

_one_at_a_time = threading.Lock()
"""Lock for libbpf, which reports errors through one function per process."""


class LoadError(CcplayError):
    """The kernel or libbpf refuses an object; ``log`` has all their messages."""

    def __init__(self, reason: str, log: str) -> None:
        super().__init__(reason)
        self.log = log


def refusal() -> str:
    """Return why no object can be loaded here; empty if no reason is known."""
    try:
        _library()
    except UnsupportedError as error:
        return str(error)
    return ""


@contextlib.contextmanager
def library() -> Generator[tuple[ctypes.CDLL, list[str]]]:
    """Yield libbpf and the list that collects its messages meanwhile, debug messages excluded.

    Raises ``UnsupportedError``.
    """
    lib, messages = _library(), []

    def listen(level: int, form: bytes, arguments: int) -> int:
        if level > _INFORMATION:
            return 0
        # At full length, because the verifier's reason is at the end of its log.
        text = ctypes.c_char_p()
        if _libc.vasprintf(ctypes.byref(text), form, ctypes.c_void_p(arguments)) >= 0:
            messages.append((text.value or b"").decode(errors="replace"))
            _libc.free(text)
        return 0

    with _one_at_a_time:
        callback = _Print(listen)
        lib.libbpf_set_print(callback)
        try:
            yield lib, messages
        finally:
            lib.libbpf_set_print(_silence)


class Registered:
    """An algorithm that the kernel offers until ``close``, or the end of this process."""

    def __init__(self, image: bytes) -> None:
        """Load the object file ``image``, which contains its name, and register its algorithm.

        Blocks for some tenths of a second. Raises ``LoadError``; its cause has the ``errno``.
        """
        with library() as (lib, messages):
            self._object, self._link = _load(lib, image, messages)

    def close(self) -> None:
        """Unregister the algorithm; sockets that use it keep it until they are closed."""
        os.close(self._link)
        _library().bpf_object__close(self._object)

    def map(self, name: bytes) -> int:
        """Return the descriptor of one of the object's maps; negative if there is none."""
        lib = _library()
        found = lib.bpf_object__find_map_by_name(self._object, name)
        return int(lib.bpf_map__fd(found)) if found else -1

    @staticmethod
    def look_up(table: int, key: object, value: object) -> int:
        """Read the entry of a map under a key into ``value``; return 0, or a negative error."""
        return int(_library().bpf_map_lookup_elem(table, key, value))


def _load(lib: ctypes.CDLL, image: bytes, messages: list[str]) -> tuple[int, int]:
    """Return libbpf's object and the link's descriptor, or undo everything and raise."""
    opened = lib.bpf_object__open_mem(image, len(image), None)
    if not opened:
        raise refused("libbpf can't open it as an object file", messages)
    with contextlib.ExitStack() as undo:
        undo.callback(lib.bpf_object__close, opened)
        table = lib.bpf_object__next_map(opened, None)
        while table and lib.bpf_map__type(table) != _MAP_STRUCT_OPS:
            table = lib.bpf_object__next_map(opened, table)
        if not table:
            raise refused("it defines no CONGESTION_CONTROL", messages)
        lib.bpf_map__set_map_flags(table, _F_LINK)
        log = ctypes.create_string_buffer(_LOG_BYTES)
        program = None
        while program := lib.bpf_object__next_program(opened, program):
            lib.bpf_program__set_log_buf(program, log, _LOG_BYTES)
        if lib.bpf_object__load(opened) != 0:
            messages.append(log.value.decode(errors="replace"))
            raise refused("the kernel refuses to load it", messages)
        link = _register(lib, table, messages)
        undo.pop_all()
    return opened, link


def _register(lib: ctypes.CDLL, table: int, messages: list[str]) -> int:
    """Register the map's operations and return the link's descriptor."""
    attached = lib.bpf_map__attach_struct_ops(table)
    if not attached:
        raise refused("the kernel refuses to register it", messages)
    if _version(lib) >= _LINK_BY_ITSELF:
        # Not a copy: nothing closes the original, which would keep the algorithm registered.
        return int(lib.bpf_link__fd(attached))
    link: int = lib.bpf_link_create(lib.bpf_map__fd(table), 0, _STRUCT_OPS, None)
    if link < 0:
        raise refused("the kernel refuses to register it", messages)
    return link


def attach_to_tracepoint(program: int) -> int:
    """Attach a program to the tracepoint it was loaded for; return the link's descriptor.

    Raises ``LoadError``.
    """
    with library() as (lib, messages):
        link: int = lib.bpf_raw_tracepoint_open(None, program)
        if link < 0:
            raise refused("the kernel refuses to attach it to its tracepoint", messages)
    return link


def refused(what: str, messages: list[str]) -> LoadError:
    """Return the error for a call of libbpf that has just failed."""
    number = ctypes.get_errno()
    error = LoadError(f"{what} ({os.strerror(number)})", "".join(messages))
    error.__cause__ = OSError(number, os.strerror(number))
    return error


def name_taken(error: LoadError) -> bool:
    """Return whether another algorithm of the host already has the name."""
    return isinstance(error.__cause__, OSError) and error.__cause__.errno == errno.EEXIST


_INFORMATION = 1
"""``LIBBPF_INFO`` of ``enum libbpf_print_level``; higher levels are debug messages."""

_MAP_STRUCT_OPS = 26
"""``BPF_MAP_TYPE_STRUCT_OPS`` of ``enum bpf_map_type``."""

_Print = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p)
_silence = _Print(lambda *_: 0)
_libc = ctypes.CDLL(None)


def _version(lib: ctypes.CDLL) -> tuple[int, int]:
    return lib.libbpf_major_version(), lib.libbpf_minor_version()


@cache
def _library() -> ctypes.CDLL:
    """Return libbpf with its functions' types. Raises ``UnsupportedError`` with the remedy."""
    try:
        lib = ctypes.CDLL("libbpf.so.1", use_errno=True)
    except OSError:
        raise UnsupportedError("libbpf is not installed (apt install libbpf1)") from None
    pointer, text, number = ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int
    for name, result, arguments in (
        ("libbpf_set_print", pointer, [_Print]),
        ("bpf_object__open_mem", pointer, [text, ctypes.c_size_t, pointer]),
        ("bpf_object__next_map", pointer, [pointer, pointer]),
        ("bpf_object__load", number, [pointer]),
        ("bpf_object__close", None, [pointer]),
        ("bpf_map__type", number, [pointer]),
        ("bpf_map__set_map_flags", number, [pointer, ctypes.c_uint32]),
        ("bpf_map__attach_struct_ops", pointer, [pointer]),
        ("bpf_map__fd", number, [pointer]),
        ("bpf_link__fd", number, [pointer]),
        ("bpf_map_lookup_elem", number, [number, pointer, pointer]),
        ("bpf_map_update_elem", number, [number, pointer, pointer, ctypes.c_uint64]),
        ("bpf_map_delete_elem", number, [number, pointer]),
        ("bpf_link_create", number, [number, number, number, pointer]),
        ("bpf_object__next_program", pointer, [pointer, pointer]),
        ("bpf_object__find_program_by_name", pointer, [pointer, text]),
        ("bpf_program__fd", number, [pointer]),
        ("bpf_program__set_autoload", number, [pointer, ctypes.c_bool]),
        ("bpf_program__set_log_buf", number, [pointer, pointer, ctypes.c_size_t]),
        ("bpf_raw_tracepoint_open", number, [text, number]),
        ("bpf_program__set_type", number, [pointer, number]),
        ("bpf_program__set_expected_attach_type", number, [pointer, number]),
        ("bpf_object__find_map_by_name", pointer, [pointer, text]),
    ):
        function = getattr(lib, name)
        function.restype, function.argtypes = result, arguments
    lib.libbpf_set_print(_silence)
    return lib
