"""Where the scenarios, themes and algorithms that come with ccplay are."""

from functools import cache
from pathlib import Path


def assets(kind: str) -> Path:
    """Return the folder of ``scenarios`` or ``themes``: in the wheel, or beside the package."""
    package = Path(__file__).parent
    inside = package / kind
    return inside if inside.is_dir() else package.parent / kind


ALGORITHMS = Path(__file__).parent / "bpf" / "programs"
"""The folder of congestion controls as BPF programs."""

SUFFIX = ".bpf"
"""What the names of those that come with ccplay end in: ``vegas.bpf`` beside Linux's ``vegas``."""


@cache
def algorithms() -> dict[str, Path]:
    """Return the sources of the congestion controls that come with ccplay, by name."""
    files = sorted(ALGORITHMS.glob(f"*{SUFFIX}.c"))
    return {file.name.removesuffix(".c"): file for file in files if file.stem != "template.bpf"}
