"""Queue disciplines of the user's own: files that only a command line names, read and tried.

No packet of a network passes here, and no scenario can name a file.
"""
