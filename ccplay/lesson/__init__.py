"""A lesson in progress: its pages in turn, judged by the run's measurements.

``course`` is the timeline of its session: as a page opens it restores the network and makes the
page's settings at 0 s; for a run it waits until no packets are left, and then plays the other
steps; it measures, and decides which answer is right. The panel shows one frame, ``Board``, made
by the presenter's ``ui/lesson_roles``; spectators receive the same frame and answer with a
vote. Nothing here draws a screen or reads a scenario file.
"""
