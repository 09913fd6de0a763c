"""``python -m ccplay.lab``: the lab's server, already inside its private namespaces."""

import gc

# What is imported and built is kept, and searching it for garbage takes a tenth of the start.
gc.disable()

from ccplay.lab.server import main  # noqa: E402

if __name__ == "__main__":
    main()
