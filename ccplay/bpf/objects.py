"""The programs and maps of one object file, in the kernel until closed or this process ends."""

from __future__ import annotations

import ctypes
from collections.abc import Iterable

from ccplay.bpf import libbpf


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
        with libbpf.library() as (lib, messages):
            self._lib = lib
            self._object = lib.bpf_object__open_mem(image, len(image), None)
            programs = list(self._each()) if self._object else []
            if kind is not None:
                for program in programs:
                    lib.bpf_program__set_type(program, kind[0])
                    lib.bpf_program__set_expected_attach_type(program, kind[1])
            for left_out in without if programs else ():
                program = lib.bpf_object__find_program_by_name(self._object, left_out.encode())
                lib.bpf_program__set_autoload(program, ctypes.c_bool())
            if not self._object or lib.bpf_object__load(self._object) != 0:
                error = libbpf.refused(f"the kernel refuses to load {name}", messages)
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
            raise libbpf.refused("the kernel has no room in a BPF map", [])

    def remove(self, table: int, key: bytes) -> None:
        """Remove a map's entry under ``key``, if there is one."""
        self._lib.bpf_map_delete_elem(table, key)

    def close(self) -> None:
        """Close the object; a program attached by a link stays loaded as long as the link."""
        self._lib.bpf_object__close(self._object)

    def _each(self) -> list[int]:
        found: list[int] = []
        program = None
        while program := self._lib.bpf_object__next_program(self._object, program):
            found.append(program)
        return found
