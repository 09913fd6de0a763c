"""Settings of the site, for Sphinx."""

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

import generate  # noqa: E402 - beside this file

from ccplay import __version__  # noqa: E402

generate.write()

project = "ccplay"
release = version = __version__
copyright = "the authors of ccplay"  # noqa: A001 - Sphinx's name
extensions = ["myst_parser"]
myst_heading_anchors = 3
myst_enable_extensions = ["colon_fence"]
source_suffix = {".md": "markdown"}
exclude_patterns = ["_build"]
nitpicky = True
# Otherwise the two dashes of an option become one, and quotes that are typed become curled.
smartquotes = False

html_theme = "furo"
html_title = "ccplay"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sphinx = False
html_theme_options = {
    "light_css_variables": {"color-brand-primary": "#0b6e6e", "color-brand-content": "#0b6e6e"},
    "dark_css_variables": {"color-brand-primary": "#5cc8c8", "color-brand-content": "#5cc8c8"},
}
