"""A lesson in progress: its pages in turn, judged by the run's measurements.

Nothing here draws a screen or reads a scenario file; see ``ccplay.ui.lesson`` and
``ccplay.scenario.lesson``.
"""
