"""Scenario files: a network, and what happens on it when, as data that people can read.

``scenarios/README.md`` documents the format. ``reading.load(library.find("bufferbloat"))`` reads a
file; every mistake in it is refused, with its place, before anything starts.
"""
