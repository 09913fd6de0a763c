"""A session with an audience: the presenter's view goes out, and spectators follow it or roam.

What is sent and how is in ``ccplay.share``.
"""
