"""Where the scenarios and themes that come with ccplay are."""

from pathlib import Path


def assets(kind: str) -> Path:
    """Return the folder of ``scenarios`` or ``themes``: in the wheel, or beside the package."""
    package = Path(__file__).parent
    inside = package / kind
    return inside if inside.is_dir() else package.parent / kind
