"""Scenario files: a network and a timeline of events, as readable data.

``scenarios/README.md`` documents the format. ``reading.load(library.find("bufferbloat"))`` reads a
file; every mistake in it is refused, with its place, before anything starts.
"""
