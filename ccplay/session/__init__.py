"""A session: a source of events, the state and the sinks together, and the timeline that it plays.

Also what undoes each command, and the archive of the latest sessions.

It knows nothing of screens and privileges.
"""
