"""Differentiated services code points by name: RFC 2474, 2597, 3246, 5865 and 8622."""

from __future__ import annotations

CODE_POINTS = {
    **{f"CS{number}": number << 3 for number in range(8)},
    **{f"AF{each}{drop}": each << 3 | drop << 1 for each in range(1, 5) for drop in range(1, 4)},
    "LE": 1,
    "VA": 44,
    "EF": 46,
}
"""Code points of six bits by name; tc and iperf3 use the same names."""

DEFAULT = "CS0"
"""Default code point, best effort."""


def type_of_service(name: str) -> int:
    """Return the byte of the IP header with a code point, both bits of ECN clear."""
    return CODE_POINTS[name] << 2
