"""A lesson while it is taken: its pages in turn, judged by the run's measurements, and progress.

Nothing here draws a screen or reads a scenario file; see ``ccplay.ui.lesson`` and
``ccplay.scenario.lesson``.
"""
