"""``python -m ccplay.lab``: the lab's server, already inside its private namespaces."""

import gc

# Nothing imported or built is ever freed, and searching it for garbage takes a tenth of the start.
gc.disable()

from ccplay.lab.network.import_stubs import in_place_of  # noqa: E402

# Both packages work without these modules, and a lab has no use for them.
with in_place_of({"ssl": None, "typing_extensions": None}):
    import asyncio  # noqa: F401

    import msgspec  # noqa: F401

from ccplay.lab.server import main  # noqa: E402

if __name__ == "__main__":
    main()
