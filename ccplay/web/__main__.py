"""``python -m ccplay.web``: the server for browsers, started by the presenter."""

import sys

from ccplay.web.serving import main

sys.exit(main(sys.argv[1:]))
