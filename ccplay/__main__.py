"""``python -m ccplay``."""

import sys

from ccplay.cli import main

if __name__ == "__main__":
    sys.exit(main())
