"""Analysis: what a run measured, whether to trust it, and what theory predicts.

This room reads states and scenarios; it starts nothing and draws nothing.
"""
