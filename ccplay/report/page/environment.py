"""The Jinja environment and the style sheet of all pages."""

from __future__ import annotations

from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

_TEMPLATES = Path(__file__).parent / "templates"


def environment() -> Environment:
    """Return an environment that escapes every value and refuses undefined ones."""
    return Environment(
        loader=FileSystemLoader(_TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def style_sheet() -> Markup:
    """Return the style sheet of all pages."""
    return Markup((_TEMPLATES / "page.css").read_text(encoding="utf-8"))  # noqa: S704 - ours
