"""A lesson as it is taken: its pages in turn, judged by what the run measured, and what is kept.

Nothing here draws a screen or reads a scenario file; see ``ccplay.ui.lesson`` and
``ccplay.scenario.lesson``.
"""
