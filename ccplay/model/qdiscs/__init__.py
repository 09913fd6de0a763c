"""The kinds of queue disciplines, described: parameters, defaults and bounds of the kernel.

Plain data; ``model.disciplines`` is their table and what reads it.
"""
