"""``python -m ccplay.share``: the server of a shared session, started by the presenter."""

import sys

from ccplay.share.server import main

sys.exit(main(sys.argv[1:]))
