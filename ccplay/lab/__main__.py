"""``python -m ccplay.lab``: the lab's server, already inside its private namespaces."""

from ccplay.lab.server import main

if __name__ == "__main__":
    main()
