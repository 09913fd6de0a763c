"""``python -m ccplay.lab``: the lab's server, already inside its private namespaces."""

import gc

# No imported or built object is ever freed; searching them for garbage takes a tenth of the start.
gc.disable()

from ccplay.lab.import_stubs import in_place_of  # noqa: E402

# asyncio and msgspec work without these modules, and a lab does not use them.
with in_place_of({"ssl": None, "typing_extensions": None}):
    import asyncio  # noqa: F401

    import msgspec  # noqa: F401

from ccplay.lab.server import main  # noqa: E402

if __name__ == "__main__":
    main()
