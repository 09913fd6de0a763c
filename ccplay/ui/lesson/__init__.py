"""A lesson on the screen: its pages beside the running network, answers by keys, and votes.

What a page asks and measures is decided in ``ccplay.lesson``.
"""
