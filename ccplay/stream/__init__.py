"""The stream of events: as JSON lines, from a lab or a recording, to a file.

It knows nothing of what the events mean to a session.
"""
