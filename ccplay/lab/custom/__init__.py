"""A user's own queue disciplines: files that only a command line names, read, loaded and tried.

No packet of a network passes through this room, and no scenario can name a file.
"""
