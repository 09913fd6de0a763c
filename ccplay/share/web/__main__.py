"""``python -m ccplay.share.web``: the server for browsers, started by the presenter."""

import sys

from ccplay.share.web.serving import main

sys.exit(main(sys.argv[1:]))
