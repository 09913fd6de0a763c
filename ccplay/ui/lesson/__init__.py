"""A lesson on the screen: its pages beside the running network, answers by keys, and votes.

``ccplay.lesson`` decides what a page asks and measures.
"""
