"""Reads a field of many consecutive messages of equal length at once."""

from __future__ import annotations

from typing import Literal, TypeAlias

Code: TypeAlias = Literal["B", "H", "I", "Q"]
_SIZES = {"B": 1, "H": 2, "I": 4, "Q": 8}


class Matrix:
    """Rows of ``length`` bytes in ``data``; ``length`` is a multiple of four, as in netlink."""

    __slots__ = ("data", "length")

    def __init__(self, data: memoryview, length: int) -> None:
        self.data = data
        self.length = length

    def column(self, code: str, at: int) -> tuple[memoryview, ...]:
        """Return the numbers at byte ``at`` of each row.

        They are one view of all rows, or two, of the even and of the odd rows, if a row's length is
        not a multiple of the number's size: a view can only step by whole elements.
        """
        size = _SIZES[code]
        if self.length % size == 0:
            return (_every(self.data, code, size, at, self.length),)
        step = 2 * self.length
        odd = _every(self.data[self.length :], code, size, at, step)
        return (_every(self.data, code, size, at, step), odd)

    def row(self, number: int, start: int, end: int) -> bytes:
        """Return the bytes from ``start`` to ``end`` of a row."""
        begin = number * self.length
        return bytes(self.data[begin + start : begin + end])


def _every(data: memoryview, code: str, size: int, at: int, step: int) -> memoryview:
    """Return the numbers at byte ``at`` and at every ``step`` bytes after it."""
    skew = at % size
    whole = data[skew : skew + (len(data) - skew) // size * size]
    return whole.cast(code)[at // size :: step // size]  # type: ignore[call-overload,no-any-return]


def numbers(column: tuple[memoryview, ...]) -> list[int]:
    """Return the numbers of a column, row by row."""
    if len(column) == 1:
        return column[0].tolist()
    even, odd = column
    found = [0] * (len(even) + len(odd))
    found[::2] = even.tolist()
    found[1::2] = odd.tolist()
    return found
