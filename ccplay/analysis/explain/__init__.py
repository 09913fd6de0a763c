"""Explains in sentences what a flow is doing at one moment, and why, from measured values.

What the values do not show is left out, or stated to be unknown.
"""
