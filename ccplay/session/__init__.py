"""A session: a source of events, the state and the sinks together, and the timeline that it plays.

It knows nothing of screens and privileges.
"""
