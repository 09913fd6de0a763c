"""A session: a source of events with the state and the sinks, and the timeline that it plays.

Also the undoing of commands, the archive of the latest sessions, and the ways to start a lab.

This package knows nothing of screens.
"""
