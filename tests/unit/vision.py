"""How well colours are told apart: WCAG contrast, and distance as the colour-blind see it."""

import math
from collections.abc import Sequence
from itertools import combinations

Triple = tuple[float, float, float]

MACHADO = {
    "normal": ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)),
    "protanopia": (
        (0.152286, 1.052583, -0.204868),
        (0.114503, 0.786281, 0.099216),
        (-0.003882, -0.048116, 1.051998),
    ),
    "deuteranopia": (
        (0.367322, 0.860646, -0.227968),
        (0.280085, 0.672501, 0.047413),
        (-0.011820, 0.042940, 0.968881),
    ),
    "tritanopia": (
        (1.255528, -0.076749, -0.178779),
        (-0.078411, 0.930809, 0.147602),
        (0.004733, 0.691367, 0.303900),
    ),
}
"""Machado, Oliveira, Fernandes: A Physiologically-based Model for Simulation of Color Vision
Deficiency, IEEE TVCG 15(6), 2009; severity 1, on linear RGB."""


def contrast(one: str, other: str) -> float:
    """Return the contrast ratio of two colours by WCAG 2.1, 1 to 21."""
    low, high = sorted((_luminance(one), _luminance(other)))
    return (high + 0.05) / (low + 0.05)


def closest(colours: tuple[str, ...], vision: str) -> float:
    """Return the smallest pairwise distance of ``colours`` in OKLab; black to white is 1."""
    seen = [_oklab(_simulate(_linear(each), vision)) for each in colours]
    return min(math.dist(one, other) for one, other in combinations(seen, 2))


def nearest_pair(colours: Sequence[str], vision: str) -> tuple[float, str, str]:
    """Return the smallest CIEDE2000 distance of two of ``colours``, and which those are.

    About 2 is just visible, 10 is seen at a glance, black to white is 100.
    """
    seen = {each: _lab(_simulate(_linear(each), vision)) for each in colours}
    return min(
        (ciede2000(seen[one], seen[other]), one, other) for one, other in combinations(colours, 2)
    )


def ciede2000(one: Triple, other: Triple) -> float:
    """Return the distance of two colours in CIELAB by CIE 142:2001.

    Written after Sharma, Wu, Dalal: The CIEDE2000 Color-Difference Formula, 2005, whose names
    it has.
    """
    (l1, a1, b1), (l2, a2, b2) = one, other
    stretch = 1 + _half(((math.hypot(a1, b1) + math.hypot(a2, b2)) / 2) ** 7)
    a1, a2 = a1 * stretch, a2 * stretch
    c1, c2 = math.hypot(a1, b1), math.hypot(a2, b2)
    h1, h2 = (math.degrees(math.atan2(b, a)) % 360 for a, b in ((a1, b1), (a2, b2)))
    grey = c1 * c2 == 0
    turn = 0.0 if grey else (h2 - h1 + 180) % 360 - 180
    hue = h1 + h2 if grey else (h1 + turn / 2) % 360
    light, chroma = (l1 + l2) / 2, (c1 + c2) / 2
    t = (
        1
        - 0.17 * _cos(hue - 30)
        + 0.24 * _cos(2 * hue)
        + 0.32 * _cos(3 * hue + 6)
        - 0.20 * _cos(4 * hue - 63)
    )
    rotation = (
        -2
        * (1 - 2 * _half(chroma**7))
        * math.sin(math.radians(60 * math.exp(-(((hue - 275) / 25) ** 2))))
    )
    in_light = (l2 - l1) / (1 + 0.015 * (light - 50) ** 2 / math.sqrt(20 + (light - 50) ** 2))
    in_chroma = (c2 - c1) / (1 + 0.045 * chroma)
    in_hue = 2 * math.sqrt(c1 * c2) * math.sin(math.radians(turn / 2)) / (1 + 0.015 * chroma * t)
    return math.sqrt(in_light**2 + in_chroma**2 + in_hue**2 + rotation * in_chroma * in_hue)


def _half(seventh: float) -> float:
    """Return ``G`` of the formula for a mean chroma to the power of seven."""
    return (1 - math.sqrt(seventh / (seventh + 25**7))) / 2


def _cos(degrees: float) -> float:
    return math.cos(math.radians(degrees))


def _lab(colour: Triple) -> Triple:
    """Convert linear RGB to CIELAB under D65."""
    x, y, z = (
        _lightness(_dot(row, colour) / sum(row))
        for row in (
            (0.4124564, 0.3575761, 0.1804375),
            (0.2126729, 0.7151522, 0.0721750),
            (0.0193339, 0.1191920, 0.9503041),
        )
    )
    return (116 * y - 16, 500 * (x - y), 200 * (y - z))


def _lightness(share: float) -> float:
    edge = 6 / 29
    return share ** (1 / 3) if share > edge**3 else share / (3 * edge**2) + 4 / 29


def _linear(colour: str) -> Triple:
    red, green, blue = (int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5))
    return (_expand(red), _expand(green), _expand(blue))


def _expand(channel: float) -> float:
    return channel / 12.92 if channel <= 0.04045 else math.pow((channel + 0.055) / 1.055, 2.4)


def _luminance(colour: str) -> float:
    return _dot((0.2126, 0.7152, 0.0722), _linear(colour))


def _simulate(colour: Triple, vision: str) -> Triple:
    first, second, third = MACHADO[vision]
    return (
        min(max(_dot(first, colour), 0), 1),
        min(max(_dot(second, colour), 0), 1),
        min(max(_dot(third, colour), 0), 1),
    )


def _oklab(colour: Triple) -> Triple:
    """Convert linear RGB to OKLab (Ottosson, 2020)."""
    cones = (
        _dot((0.4122214708, 0.5363325363, 0.0514459929), colour) ** (1 / 3),
        _dot((0.2119034982, 0.6806995451, 0.1073969566), colour) ** (1 / 3),
        _dot((0.0883024619, 0.2817188376, 0.6299787005), colour) ** (1 / 3),
    )
    return (
        _dot((0.2104542553, 0.7936177850, -0.0040720468), cones),
        _dot((1.9779984951, -2.4285922050, 0.4505937099), cones),
        _dot((0.0259040371, 0.7827717662, -0.8086757660), cones),
    )


def _dot(one: Triple, other: Triple) -> float:
    return one[0] * other[0] + one[1] * other[1] + one[2] * other[2]
