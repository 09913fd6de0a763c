"""A session with an audience: the presenter's view is sent, and spectators follow it or roam.

``ccplay.share`` defines what is sent, and how.
"""
