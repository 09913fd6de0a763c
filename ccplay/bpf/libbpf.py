"""Calls libbpf through ctypes: loads objects, registers algorithms, reads their variables.

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
import re
import struct
import threading
from collections.abc import Callable, Generator, Iterable, Iterator
from functools import cache

from ccplay.errors import CcplayError, UnsupportedError

# --- calls libbpf through ctypes: loads an object and registers its ``tcp_congestion_ops`` --------

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
        for program in _programs_of(lib, opened):
            lib.bpf_program__set_log_buf(program, log, _LOG_BYTES)
        if lib.bpf_object__load(opened) != 0:
            messages.append(log.value.decode(errors="replace"))
            raise refused("the kernel refuses to load it", messages)
        link = _register(lib, table, messages)
        undo.pop_all()
    return opened, link


def _programs_of(lib: ctypes.CDLL, opened: int) -> Iterator[int]:
    """Yield the programs of an object that libbpf has opened."""
    program = None
    while program := lib.bpf_object__next_program(opened, program):
        yield program


def _register(lib: ctypes.CDLL, table: int, messages: list[str]) -> int:
    """Register the map's operations and return the link's descriptor."""
    attached = lib.bpf_map__attach_struct_ops(table)
    if not attached:
        raise refused("the kernel refuses to register it", messages)
    if (lib.libbpf_major_version(), lib.libbpf_minor_version()) >= _LINK_BY_ITSELF:
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


# --- the programs and maps of one object file, in the kernel until closed or this process ends ----


class Programs:
    """A loaded object; ``descriptors`` are its programs' file descriptors, in the file's order."""

    descriptors: list[int]

    def __init__(
        self,
        image: bytes,
        name: str,
        kind: tuple[int, int] | None = None,
        without: Iterable[str] = (),
    ) -> None:
        """Load the object file ``image``, which messages call ``name``.

        ``kind`` are ``enum bpf_prog_type`` and ``enum bpf_attach_type`` of all its programs, if
        libbpf does not derive them from the section. Programs in ``without`` are not loaded and
        have no descriptor. Raises ``LoadError``.
        """
        with library() as (lib, messages):
            self._lib = lib
            self._object = lib.bpf_object__open_mem(image, len(image), None)
            programs = [*_programs_of(lib, self._object)] if self._object else []
            if kind is not None:
                for program in programs:
                    lib.bpf_program__set_type(program, kind[0])
                    lib.bpf_program__set_expected_attach_type(program, kind[1])
            for left_out in without if programs else ():
                program = lib.bpf_object__find_program_by_name(self._object, left_out.encode())
                lib.bpf_program__set_autoload(program, ctypes.c_bool())
            if not self._object or lib.bpf_object__load(self._object) != 0:
                error = refused(f"the kernel refuses to load {name}", messages)
                self.close()
                raise error
            descriptors = [lib.bpf_program__fd(each) for each in programs]
            self.descriptors = [each for each in descriptors if each >= 0]

    def map(self, name: str) -> int:
        """Return the descriptor of a map."""
        found = self._lib.bpf_object__find_map_by_name(self._object, name.encode())
        return int(self._lib.bpf_map__fd(found))

    def look_up(self, table: int, key: bytes, value: object) -> bool:
        """Read a map's entry under ``key`` into the buffer ``value``; False if there is none."""
        return bool(self._lib.bpf_map_lookup_elem(table, key, value) == 0)

    def put(self, table: int, key: bytes, value: bytes) -> None:
        """Put a value into a map. Raises ``LoadError`` if the map is full."""
        if self._lib.bpf_map_update_elem(table, key, value, 0) != 0:
            raise refused("the kernel has no room in a BPF map", [])

    def remove(self, table: int, key: bytes) -> None:
        """Remove a map's entry under ``key``, if there is one."""
        self._lib.bpf_map_delete_elem(table, key)

    def close(self) -> None:
        """Close the object; a program attached by a link stays loaded as long as the link."""
        self._lib.bpf_object__close(self._object)


# --- the variables that an algorithm declares with ``SHOWN``, read from their BPF map -------------

_NAMES = re.compile(rb"ccplay\.shown:([^\0]*)\0")
_NAME = re.compile(r"[a-z][a-z0-9_]{0,39}")
_VALUES = struct.Struct("=8Q")
_MOST = 1 << 53
"""Greatest value of a shown variable; greater ones were negative and are omitted."""


def names_in(image: bytes) -> list[str]:
    """Return the variables that an object file declares; empty if none.

    Raises ``LoadError`` for an invalid or repeated name, or more than eight names.
    """
    if (found := _NAMES.search(image)) is None:
        return []
    names = found[1].decode(errors="replace").split()
    wrong = [each for each in names if _NAME.fullmatch(each) is None]
    if wrong or len(names) > 8 or len(set(names)) < len(names):
        raise LoadError(
            "SHOWN takes up to eight different names of small letters, digits and _"
            + (f", not {wrong[0]!r}" if wrong else ""),
            "",
        )
    return names


class ShownVariables:
    """The variables that an algorithm shows of each of its connections."""

    def __init__(self, names: list[str], registered: Registered) -> None:
        self._names = names
        self._map: int = registered.map(b"shown")
        self._look_up: Callable[..., int] = registered.look_up
        self._key = ctypes.c_uint64()
        self._values = ctypes.create_string_buffer(_VALUES.size)

    def read(self, cookie: int) -> dict[str, int]:
        """Return the values of a connection by name; empty if none has been set yet."""
        self._key.value = cookie
        if self._look_up(self._map, ctypes.byref(self._key), self._values) != 0:
            return {}
        values = _VALUES.unpack(self._values)
        return {
            name: value for name, value in zip(self._names, values, strict=False) if value <= _MOST
        }


# --- registers an object file under a kernel name that is unique on the host ----------------------

_PLACEHOLDER = b"ccplay.cc.name."
"""Placeholder for an algorithm's name in the kernel, which ``NAME`` of ccplay_cc.h expands to."""


def register(image: bytes, name: str) -> tuple[str, Registered]:
    """Register the algorithm ``name`` of an object; return its name in the kernel, too.

    Raises ``LoadError``.
    """
    if image.count(_PLACEHOLDER) != 1:
        raise LoadError("it must have exactly one CONGESTION_CONTROL, with .name = NAME", "")
    while True:
        kernel_name = f"cc{os.urandom(2).hex()}_{name.replace('-', '_')[:8]}"
        named = image.replace(_PLACEHOLDER, kernel_name.encode().ljust(len(_PLACEHOLDER), b"\0"))
        try:
            return kernel_name, Registered(named)
        except LoadError as error:
            if not name_taken(error):
                raise


def try_out(image: bytes, name: str) -> None:
    """Let the kernel check a whole object, then unregister it. Raises ``LoadError``."""
    names_in(image)
    _, registered = register(image, name)
    registered.close()
