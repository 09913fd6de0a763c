"""A user's own queue disciplines: files that only a command line names, read, loaded and tried.

This package handles no packets of a network, and no scenario can name a file.
"""
