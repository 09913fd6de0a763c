"""Lessons contained in scenario files: their values, how they are read, and their schema.

Nothing here runs or judges a lesson; see ``ccplay.lesson``.
"""
